import { defineEnvironment, type Environment } from '../environment.ts'
// Import this statically, outside of all tasks: it captures the async context of the import.
import './outside-tasks.ts'
import type { OpenEnvServer, OpenEnvSession } from './openenv-session.ts'
import { worldError } from './world-errors.ts'
import { checkOptions, invalid, MILLISECONDS, OBJECT, type Rule, shown, TEXT } from './world-options.ts'
import { taskSeed } from './world-seed.ts'

export interface OpenEnvOptions {
  /** `http://host:8000`, or the address of the WebSocket: `wss://host/ws`. */
  readonly url: string
  /** The name in messages and recordings. Default: the host. */
  readonly name?: string
  /** HTTP headers of the connection request. */
  readonly headers?: Readonly<Record<string, string>>
  /** How long connecting, a reset or a step may take. Default: one minute. */
  readonly callTimeoutMs?: number
  /** How long an episode waits for a server without free capacity. Default: one minute. */
  readonly capacityWaitMs?: number
}

/** The input of a task in an OpenEnv environment. */
export interface OpenEnvTask {
  /** The seed for `reset`. Default: derived from the seed of the run and the task. */
  readonly seed?: number
  /** Additional arguments of `reset`. */
  readonly options?: Readonly<Record<string, unknown>>
  readonly [key: string]: unknown
}

const RULES: Readonly<Record<keyof OpenEnvOptions, Rule>> = {
  url: TEXT,
  name: TEXT,
  headers: OBJECT,
  callTimeoutMs: MILLISECONDS,
  capacityWaitMs: MILLISECONDS,
}
const CALL_TIMEOUT_MS = 60_000
const CAPACITY_WAIT_MS = 60_000

interface Episode {
  readonly session: OpenEnvSession
  steps: number
}

/**
 * Connects to an environment of an OpenEnv server, for `stepAgent`, with one connection per episode. OpenEnv servers do not
 * tell whether an episode terminated or was truncated, so the ending is recorded as unknown.
 *
 * @example
 * const echo = openEnv<{ echoed: string }, { message: string }>({ url: 'http://localhost:8000' })
 */
export function openEnv<Observation = unknown, Action extends object = Record<string, unknown>>(
  options: OpenEnvOptions,
): Environment<OpenEnvTask | undefined, Observation, Action> {
  checkOptions('openEnv', options, RULES, ['url'])
  const url = socketUrl(options.url)
  const { name = url.host, headers = {}, callTimeoutMs = CALL_TIMEOUT_MS, capacityWaitMs = CAPACITY_WAIT_MS } = options
  const address = `${url.protocol}//${url.host}${url.pathname}`
  const server: OpenEnvServer = { url: url.href, address, headers, callTimeoutMs, capacityWaitMs }
  const environment = defineEnvironment({
    name,
    reset: async ({ input }: { input: OpenEnvTask | undefined }, ctx) => {
      const { OpenEnvSession } = await import('./openenv-session.ts')
      const data = { ...input?.options, seed: taskSeed(input?.seed, ctx, name), episode_id: ctx.idempotencyKey }
      const { session, first } = await OpenEnvSession.reset(server, data, ctx.signal)
      return { state: { session, steps: 0 } as Episode, observation: first.observation }
    },
    step: async (episode, action: object) => {
      if (typeof action !== 'object' || action === null || Array.isArray(action))
        throw worldError(
          'ACTION_INVALID',
          `an action in '${name}' must be an object with the fields of the server's /schema, it is ${shown(action)}`,
        )
      const { observation, reward, done } = await episode.session.step(action, episode.steps++)
      return { observation, reward, done, ...(done && { truncated: 'unknown' as const }) }
    },
    close: ({ session }) => session.close(),
  })
  return environment as unknown as Environment<OpenEnvTask | undefined, Observation, Action>
}

function socketUrl(given: string): URL {
  const url = URL.canParse(given) ? new URL(given) : undefined
  if (url === undefined || !/^(https?|wss?):$/.test(url.protocol))
    throw invalid('openEnv', `\`url\` must be an address such as http://localhost:8000, it is ${shown(given)}`)
  if (url.protocol.startsWith('http')) url.protocol = url.protocol.replace('http', 'ws')
  if (!url.pathname.endsWith('/ws')) url.pathname = `${url.pathname.replace(/\/$/, '')}/ws`
  return url
}

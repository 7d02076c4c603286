import { defineEnvironment, type Environment } from '../environment.ts'
// Loaded with this module, outside of all tasks: it remembers where it was loaded.
import './outside-tasks.ts'
import type { OpenEnvServer, OpenEnvSession } from './openenv-session.ts'
import { worldError } from './world-errors.ts'
import { checkOptions, invalid, MILLISECONDS, OBJECT, type Rule, shown, TEXT } from './world-options.ts'
import { taskSeed } from './world-seed.ts'

export interface OpenEnvOptions {
  /** `http://host:8000`, or the address of its WebSocket: `wss://host/ws`. */
  readonly url: string
  /** What messages and recordings call it. Default: its host. */
  readonly name?: string
  /** Sent with the request to connect. */
  readonly headers?: Readonly<Record<string, string>>
  /** How long connecting, a reset or a step may take. Default: a minute. */
  readonly callTimeoutMs?: number
  /** How long an episode waits for a server that has no room for another session. Default: a minute. */
  readonly capacityWaitMs?: number
}

/** The input of a task in an OpenEnv environment. */
export interface OpenEnvTask {
  /** What `reset` is given. Default: one that follows from the seed of the run and the task. */
  readonly seed?: number
  /** What else `reset` is given. */
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
 * An environment of an OpenEnv server, for `stepAgent`: a connection for each episode. Such servers do not say whether an episode
 * came to an end or was cut short, so its ending is recorded as unknown.
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
          `an action in '${name}' must be an object with the fields that the server's /schema names, it is ${shown(action)}`,
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

import { ensureEnvironment } from '../../python/environment.ts'
import { Bridge, type BridgeEvent, type BridgeHooks, type RayNode } from './bridge.ts'
import { bridgeEnvironment, RAY_VERSION } from './environment.ts'
import { connectError, namesToken, SAID_BEFORE_THROWN, startedTooSlowly, wantsToken } from './error-advice.ts'
import type { RayOptions } from './options.ts'
import { refuseUnreachable } from './reachable.ts'
import { needsFor, SAME_MINOR_PYTHON, versionMismatch } from './versions.ts'

export interface Connecting {
  readonly options: RayOptions
  readonly inLocal: boolean
  /** The arguments of `ray.init`. */
  readonly init: Readonly<Record<string, unknown>>
  readonly notice: (line: string) => void
  readonly stopped: () => boolean
  /** The bridge that is being tried, so that it can be ended. */
  readonly trying: (bridge: Bridge) => void
  /** Receives the bridge's messages once it is connected. */
  readonly hooks: Pick<BridgeHooks, 'event' | 'data' | 'ended'>
}

export interface Connected {
  readonly bridge: Bridge
  readonly nodes: readonly RayNode[]
}

/** Connects to a cluster or starts one, with the cluster's versions. Undefined if it was stopped meanwhile. */
export async function connectToRay(connecting: Connecting): Promise<Connected | undefined> {
  const { options, inLocal, notice, stopped } = connecting
  const { address: given = 'auto' } = options
  const address = given === 'auto' ? process.env.RAY_ADDRESS || given : given
  let versions: { readonly ray: string; readonly python?: string } = { ray: options.version ?? RAY_VERSION }
  let ownToken = false
  let slowStarts = 0
  // Each round corrects why the previous one failed: wrong versions, the unused token in ~/.ray, or a slow start.
  for (;;) {
    if (!inLocal) await refuseUnreachable(address)
    if (stopped()) return undefined
    const needs = needsFor(versions)
    const program = await ensureEnvironment(needs, notice)
    if (stopped()) return undefined
    const result = await tryOnce(connecting, program, ownToken)
    if (stopped()) return undefined
    if (typeof result !== 'string') return result
    const there = versionMismatch(result)?.there
    const others = there !== undefined && (there.ray !== versions.ray || there.python !== needs.python)
    if (others && (options.version ?? there.ray) === there.ray) {
      notice(`the cluster has Ray ${there.ray} on Python ${there.python}, and not ${versions.ray} on ${needs.python}`)
      versions = there
    } else if (!ownToken && wantsToken(result) && !namesToken(options))
      // `ray start` uses the token in ~/.ray by default, `ray.init` does not, and must not if there is none.
      ownToken = true
    else if (startedTooSlowly(result) && slowStarts++ === 0)
      notice(
        inLocal
          ? 'Ray did not start in time on this machine, which seems busy; starting it once more'
          : `the Ray cluster at ${address} did not start a server for this driver in time, and seems busy; trying once more`,
      )
    else {
      const what = inLocal ? 'cannot start Ray on this machine' : `cannot use the Ray cluster at ${address}`
      throw await connectError(what, result, address)
    }
  }
}

/** The connection, or Ray's error. */
async function tryOnce(
  { options, init, trying, hooks }: Connecting,
  program: string,
  ownToken: boolean,
): Promise<Connected | string> {
  const first = Promise.withResolvers<readonly RayNode[]>()
  let connected = false
  const env = {
    ...SAME_MINOR_PYTHON,
    ...bridgeEnvironment(program, options),
    ...(ownToken ? { RAY_AUTH_MODE: 'token' } : {}),
  }
  const bridge = new Bridge(program, env, {
    event: (event: BridgeEvent) => {
      if (event.event === 'init') first.resolve(event.nodes)
      else if (event.event === 'error' && !connected) first.reject(new Error(`${event.kind}: ${event.text}`))
      else hooks.event(event)
    },
    data: hooks.data,
    stderr: (tail) => {
      // Ray prints a wrong token at once and throws 20 s later; if nothing answers, it throws after minutes.
      if (!connected && SAID_BEFORE_THROWN.test(tail)) first.reject(new Error(tail))
    },
    ended: (how, stderr) => {
      if (connected) hooks.ended(how, stderr)
      else first.reject(new Error(`${how}\n${stderr}`))
    },
  })
  trying(bridge)
  bridge.control({ op: 'init', ...init, ...(options.token === undefined ? {} : { token: options.token }) })
  try {
    const nodes = await first.promise
    connected = true
    return { bridge, nodes }
  } catch (error) {
    bridge.kill()
    return (error as Error).message
  }
}

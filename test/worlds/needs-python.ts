import { type WorldKind, worldEnvSpec } from '../../dist/agents/worlds/world-packages.js'
import { ensureEnvironment } from '../../dist/python/environment.js'

/** Setting one up may take minutes where packages come as sources. */
export const SET_UP_MS = 400_000

/** Sets up what worlds of this kind run in. Why that is not possible here, if it is not; under CI that is a failure. */
export async function whyNoWorlds(kind: WorldKind): Promise<string | undefined> {
  try {
    await ensureEnvironment(worldEnvSpec(kind), (line) => void process.stderr.write(`${line}\n`))
    return undefined
  } catch (error) {
    if (process.env.CI) throw error
    const reason = (error as Error).message
    process.stderr.write(`\n*** SKIPPED: worlds of kind ${kind} cannot be set up here: ${reason} ***\n\n`)
    return reason
  }
}

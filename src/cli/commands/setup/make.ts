import { rmSync } from 'node:fs'
import { ManyworldsError } from '../../../errors.ts'
import { ensureEnvironment, environmentFolder, type PythonEnvSpec } from '../../../python/environment.ts'
import { say } from '../../../text/say.ts'
import { type Probed, probe } from '../doctor/probe.ts'

/** An environment that was made, or was there. */
export interface Made {
  /** What it has said of itself: `Ray 2.60.0 on Python 3.11.9`. */
  readonly works: string
  readonly folder: string
}

/** On a machine that is busy, Python reads a package that large for longer than other programs take to say their version. */
const ANSWER_MS = 60_000

/** The environment's Python. */
export const make = (needs: PythonEnvSpec): Promise<string> => ensureEnvironment(needs, say)

/** Makes an environment, and lets it show that it works: `ask` is what its Python gets, `hear` what its answer means. */
export async function makeAndAsk(
  needs: PythonEnvSpec,
  force: boolean,
  ask: readonly string[],
  hear: (output: string) => string | undefined,
): Promise<Made> {
  const folder = environmentFolder(needs)
  if (force) rmSync(folder, { recursive: true, force: true })
  const asked = await probe(await make(needs), ask, ANSWER_MS)
  const works = asked.ok ? hear(asked.output) : undefined
  if (works === undefined)
    throw new ManyworldsError(
      'PYTHON_SETUP_FAILED',
      `${needs.title} is installed in ${folder} and does not work: ${problemOf(asked)}. Make it anew with --force`,
    )
  return { works, folder }
}

const problemOf = (asked: Probed) => (asked.ok ? 'it does not say its version' : asked.problem)

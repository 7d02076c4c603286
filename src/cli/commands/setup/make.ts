import { rmSync } from 'node:fs'
import { ManyworldsError } from '../../../errors.ts'
import { ensureEnvironment, environmentFolder, type PythonEnvSpec } from '../../../python/environment.ts'
import { say } from '../../../text/say.ts'
import { type Probed, probe } from '../doctor/probe.ts'

/** An environment that was made or already existed. */
export interface Made {
  /** Its versions, as it printed them: `Ray 2.60.0 on Python 3.11.9`. */
  readonly works: string
  readonly folder: string
}

/** On a busy machine, importing such a large package takes much longer than printing a version. */
const ANSWER_MS = 60_000

/** Makes the environment if it is missing. Resolves to the path of its Python. */
export const make = (needs: PythonEnvSpec): Promise<string> => ensureEnvironment(needs, say)

/** Makes an environment and tests it: `ask` are the arguments of its Python, and `hear` reads the versions from its output. */
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
      `${needs.title} is installed in ${folder} but does not work: ${problemOf(asked)}. Make it again with --force`,
    )
  return { works, folder }
}

const problemOf = (asked: Probed) => (asked.ok ? 'its version cannot be read from its output' : asked.problem)

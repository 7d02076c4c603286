import { environmentFolder, existingEnvironment, type PythonEnvSpec } from '../../../python/environment.ts'
import type { Check } from './check.ts'

type What = Pick<Check, 'name' | 'concerns' | 'purpose'> & { readonly version: string }

/** Checks whether the Python environment of an engine exists. An environment that the user made elsewhere is not used. */
export function checkEnvironment({ version, ...rest }: What, needs: PythonEnvSpec, advice: string): Check {
  const what = { ...rest, required: false }
  return existingEnvironment(needs) === undefined
    ? { ...what, status: 'missing', advice }
    : { ...what, status: 'ok', version, path: environmentFolder(needs) }
}

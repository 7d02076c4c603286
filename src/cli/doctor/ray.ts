import { needsOf, RAY_VERSION } from '../../engines/ray/environment.ts'
import { environmentFolder, existingEnvironment } from '../../python/environment.ts'
import type { Check } from './check.ts'

/** Whether the environment of the Ray engine was made. A Ray of the user's own is not used. */
export function checkRay(): Check {
  const needs = needsOf(RAY_VERSION)
  const what = { name: 'Ray', concerns: 'ray', required: false, purpose: 'the Ray engine' } as const
  return existingEnvironment(needs) === undefined
    ? { ...what, status: 'missing', advice: '"manyworlds setup ray" sets it up, or the first run on Ray does' }
    : { ...what, status: 'ok', version: RAY_VERSION, path: environmentFolder(needs) }
}

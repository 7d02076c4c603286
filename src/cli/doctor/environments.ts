import { RAY_VERSION, needsOf as rayNeeds } from '../../engines/ray/environment.ts'
import { SPARK_VERSION, needsOf as sparkNeeds } from '../../engines/spark/environment.ts'
import { environmentFolder, existingEnvironment, type Needs } from '../../python/environment.ts'
import type { Check } from './check.ts'

/** Whether the environments of the engines were made. A Ray or Spark of the user's own is not used. */
export const checkEnvironments = (): Check[] => [
  check(
    { name: 'Ray', concerns: 'ray', purpose: 'the Ray engine', version: RAY_VERSION },
    rayNeeds(RAY_VERSION),
    '"manyworlds setup ray" sets it up, or the first run on Ray does',
  ),
  check(
    { name: 'Spark', concerns: 'spark', purpose: 'a Spark that is started here', version: SPARK_VERSION },
    sparkNeeds(SPARK_VERSION),
    '"manyworlds setup spark" sets it up, or the first run with --in-local does',
  ),
]

type What = Pick<Check, 'name' | 'concerns' | 'purpose'> & { readonly version: string }

function check({ version, ...rest }: What, needs: Needs, advice: string): Check {
  const what = { ...rest, required: false }
  return existingEnvironment(needs) === undefined
    ? { ...what, status: 'missing', advice }
    : { ...what, status: 'ok', version, path: environmentFolder(needs) }
}

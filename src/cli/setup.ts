import { visible } from '../text/visible.ts'
import { setUpRay } from './setup/ray.ts'
import { setUpSpark } from './setup/spark.ts'
import type { SetupArgs } from './specs/setup.ts'

/** `manyworlds setup ray`, `manyworlds setup spark` */
export async function run(args: SetupArgs): Promise<number> {
  const { works, folder } = await (args.what === 'ray' ? setUpRay(args) : setUpSpark(args))
  process.stdout.write(`${visible(`${works}, in ${folder}`)}\n`)
  return 0
}

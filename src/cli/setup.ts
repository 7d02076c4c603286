import { visible } from '../text/visible.ts'
import { setUpLora } from './setup/lora.ts'
import type { Made } from './setup/make.ts'
import { refuseForeign } from './setup/options.ts'
import { setUpRay } from './setup/ray.ts'
import { setUpSpark } from './setup/spark.ts'
import { setUpWorld } from './setup/world.ts'
import type { SetupArgs } from './specs/setup.ts'

/** `manyworlds setup ray`, `spark`, `gymnasium`, `reasoning-gym`, `lora` */
export async function run(args: SetupArgs): Promise<number> {
  refuseForeign(args)
  const { works, folder } = await setUp(args)
  process.stdout.write(`${visible(`${works}, in ${folder}`)}\n`)
  return 0
}

function setUp(args: SetupArgs): Promise<Made> {
  switch (args.what) {
    case 'ray':
      return setUpRay(args)
    case 'spark':
      return setUpSpark(args)
    case 'gymnasium':
    case 'reasoning-gym':
      return setUpWorld(args.what, args)
    case 'lora':
      return setUpLora(args)
  }
}

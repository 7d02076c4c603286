import { findDefinition } from '../../../engines/make-engine.ts'
import { installCommand, missingPeers } from '../../../optional-peers.ts'
import { escapeControls } from '../../../text/escape-controls.ts'
import { say } from '../../../text/say.ts'
import { setups } from './engine-setups.ts'
import { setUpLora } from './lora.ts'
import type { Made } from './make.ts'
import { refuseForeign } from './options.ts'
import type { SetupArgs } from './spec.ts'
import { setUpWorld } from './world.ts'

/** `manyworlds setup WHAT`: an engine, a kind of worlds, or `lora`. */
export async function run(args: SetupArgs): Promise<number> {
  refuseForeign(args)
  const { works, folder } = await setUp(args)
  process.stdout.write(`${escapeControls(`${works}, in ${folder}`)}\n`)
  const missing = missingPeers((findDefinition(args.what)?.packages ?? []).flatMap(({ packages }) => packages))
  if (missing.length > 0)
    say(`runs on ${args.what} also need packages that are not installed; run: ${installCommand(missing)}`)
  return 0
}

function setUp(args: SetupArgs): Promise<Made> {
  const engine = setups.get(args.what)
  if (engine) return engine.run(args)
  switch (args.what) {
    case 'gymnasium':
    case 'reasoning-gym':
      return setUpWorld(args.what, args)
    default:
      return setUpLora(args)
  }
}

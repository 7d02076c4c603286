import { ownPackage } from '../../../own-package.ts'
import { pageWidth } from '../../../text/columns.ts'
import { painterFor } from '../../../text/paint.ts'
import { commands } from '../../commands.ts'
import type { Spec } from '../../frame/command.ts'
import { findCommand } from '../../frame/find-command.ts'
import { helpPage, type Look, overview } from '../../frame/help-pages.ts'
import type { HelpArgs } from './spec.ts'

/** `manyworlds help [COMMAND]` */
export async function run({ command }: HelpArgs): Promise<number> {
  if (command === undefined) process.stdout.write(overview(commands, ownPackage.version, look()))
  else printHelp(findCommand(command).spec)
  return 0
}

export function printHelp(spec: Spec): void {
  process.stdout.write(helpPage(spec, look()))
}

const look = (): Look => ({ width: pageWidth(process.stdout), paint: painterFor(process.stdout) })

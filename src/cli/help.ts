import { ownPackage } from '../own-package.ts'
import { painter } from './colour.ts'
import type { Spec } from './command.ts'
import { commands } from './commands.ts'
import { findCommand } from './find-command.ts'
import { helpPage, type Look, overview } from './help-pages.ts'
import { widthOf } from './layout.ts'
import type { HelpArgs } from './specs/help.ts'

/** `manyworlds help [COMMAND]` */
export async function run({ command }: HelpArgs): Promise<number> {
  if (command === undefined) process.stdout.write(overview(commands, ownPackage.version, look()))
  else printHelp(findCommand(command).spec)
  return 0
}

export function printHelp(spec: Spec): void {
  process.stdout.write(helpPage(spec, look()))
}

const look = (): Look => ({ width: widthOf(process.stdout), paint: painter(process.stdout) })

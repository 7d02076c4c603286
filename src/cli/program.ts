import { ownPackage } from '../own-package.ts'
import type { Command } from './frame/command.ts'
import { reportError } from './frame/error-report.ts'
import { findCommand } from './frame/find-command.ts'
import { parse } from './frame/parse.ts'

/** Runs the typed command. Resolves to the exit code. */
export async function program(words: readonly string[]): Promise<number> {
  const [name = '--help', ...rest] = words
  let command: Command | undefined
  try {
    switch (name) {
      case '-v':
      case '--version':
        process.stdout.write(`${ownPackage.version}\n`)
        return 0
      case '-h':
      case '--help':
        return await (await import('./commands/help/action.ts')).run({ command: undefined })
      case '__complete':
        return await (await import('./frame/complete.ts')).answerShell(rest)
    }
    command = findCommand(name)
    const parsed = parse(command.spec, rest)
    if (parsed.help) {
      const { printHelp } = await import('./commands/help/action.ts')
      printHelp(command.spec)
      return 0
    }
    const body = await command.load()
    return await body.run(parsed.args as never)
  } catch (error) {
    return reportError(error, command?.spec.name)
  }
}

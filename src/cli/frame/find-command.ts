import { existsSync } from 'node:fs'
import { didYouMean } from '../../did-you-mean.ts'
import { commands } from '../commands.ts'
import type { Command } from './command.ts'
import { UsageError } from './usage-error.ts'

/** The command with this name. Throws if there is none, with a suggestion. */
export function findCommand(name: string): Command {
  const found = commands.find(({ spec }) => spec.name === name)
  if (found !== undefined) return found
  if (name.startsWith('-'))
    throw new UsageError(`unknown option "${name}"; options come after a command: manyworlds COMMAND ${name}`)
  const names = commands.map(({ spec }) => spec.name)
  const meant = didYouMean(name, names)
  if (meant === '' && existsSync(name))
    throw new UsageError(`unknown command "${name}"; to run that file: manyworlds run ${name}`)
  throw new UsageError(`unknown command "${name}"${meant || `; commands: ${names.join(', ')}`}`)
}

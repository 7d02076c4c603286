import { ownCommand } from '../../text/own-command.ts'
import { shellWord } from '../../text/shell-word.ts'
import { withoutToken } from '../spark-remote.ts'

const VALUED = ['--run-id', '--resume']

/** What to type to go on with a run: the same words, and the run. Logs keep it, and so a token is left out. */
export function resumeCommand(words: readonly string[], run: string): string {
  const dashes = words.indexOf('--')
  const ours = (dashes < 0 ? words : words.slice(0, dashes)).map(withoutToken)
  const kept: string[] = []
  for (let i = 0; i < ours.length; i++) {
    const [flag = '', value] = ours[i]!.split('=', 2)
    if (VALUED.includes(flag)) i += value === undefined ? 1 : 0
    else kept.push(ours[i]!)
  }
  const rest = dashes < 0 ? [] : words.slice(dashes)
  return [...ownCommand(), ...kept, '--resume', run, ...rest].map(shellWord).join(' ')
}

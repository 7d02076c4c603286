import { withoutToken } from '../../engines/spark/typed-remote.ts'
import { ownCommand, shellWord } from '../../text/own-command.ts'
import { withoutEnvValues } from './env-options.ts'

const VALUED = ['--run-id', '--resume']

/**
 * The command that resumes a run: the same words and the run. It contains no tokens or values of variables, because it
 * may end up in logs.
 */
export function resumeCommand(words: readonly string[], run: string): string {
  const dashes = words.indexOf('--')
  const ours = withoutEnvValues(dashes < 0 ? words : words.slice(0, dashes)).map(withoutToken)
  const kept: string[] = []
  for (let i = 0; i < ours.length; i++) {
    const [flag = '', value] = ours[i]!.split('=', 2)
    if (VALUED.includes(flag)) i += value === undefined ? 1 : 0
    else kept.push(ours[i]!)
  }
  const rest = dashes < 0 ? [] : words.slice(dashes)
  return [...ownCommand(), ...kept, '--resume', run, ...rest].map(shellWord).join(' ')
}

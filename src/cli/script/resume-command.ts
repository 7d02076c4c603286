import { withoutToken } from '../../engines/spark/typed-remote.ts'
import { isSecretVariable } from '../../runners/environment.ts'
import { ownCommand, shellWord } from '../../text/own-command.ts'
import { withoutEnvValues } from './env-options.ts'

const VALUED = ['--run-id', '--resume']

/**
 * The command that resumes a run: the same words and the run. It contains no tokens or values of variables, because it
 * may end up in logs.
 */
export function resumeCommand(words: readonly string[], run: string): string {
  const [ours, rest] = split(words)
  return [...ownCommand(), ...ours, '--resume', run, ...rest].map(shellWord).join(' ')
}

/** The words of a command that are stored with its runs: without the name of the run, and without what looks like a secret. */
export function storedCommand(words: readonly string[]): string[] {
  const [ours, rest] = split(words)
  return [...ours, ...rest.map((word, place) => withoutSecret(word, rest[place - 1]))]
}

/** Our words, without those that name the run, and the script's, from `--` on. */
function split(words: readonly string[]): [ours: string[], rest: readonly string[]] {
  const dashes = words.indexOf('--')
  const ours = withoutEnvValues(dashes < 0 ? words : words.slice(0, dashes)).map(withoutToken)
  const kept: string[] = []
  for (let i = 0; i < ours.length; i++) {
    const [flag = '', value] = ours[i]!.split('=', 2)
    if (VALUED.includes(flag)) i += value === undefined ? 1 : 0
    else kept.push(ours[i]!)
  }
  return [kept, dashes < 0 ? [] : words.slice(dashes)]
}

/** An argument of the script: `--api-key=…`, or the word after `--api-key`. */
function withoutSecret(word: string, before = ''): string {
  const [, flag, typed] = /^(-[^=]*)=(.*)$/s.exec(word) ?? []
  if (flag !== undefined) return isSecretVariable(variableName(flag), typed!) ? `${flag}=...` : word
  if (word.startsWith('-')) return word
  return isSecretVariable(before.startsWith('-') ? variableName(before) : '', word) ? '...' : word
}

/** `--api-key` or `--apiKey` as a variable: API_KEY. */
const variableName = (flag: string) =>
  flag
    .replace(/^-+/, '')
    .replaceAll(/([a-z0-9])([A-Z])/g, '$1_$2')
    .replaceAll(/[-.]/g, '_')
    .toUpperCase()

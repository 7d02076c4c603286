import { isSecretVariable } from '../../runners/environment.ts'
import { UsageError } from '../frame/usage-error.ts'

const NAME = /^[A-Za-z_][A-Za-z0-9_]*$/

/** The variables of `--env`, with their values. A name without a value keeps the value out of `ps`, shell histories and logs. */
export function typedEnv(words: readonly string[], own: NodeJS.ProcessEnv = process.env): Record<string, string> {
  return Object.fromEntries(words.map((word) => variable(word, own)))
}

function variable(word: string, own: NodeJS.ProcessEnv): [name: string, value: string] {
  const [, name = word, typed] = /^([^=]*)=(.*)$/s.exec(word) ?? []
  // Not quoted in the message: it may be the secret value itself.
  if (!NAME.test(name)) throw new UsageError('--env takes NAME or NAME=VALUE; a name has letters, digits and _ only')
  if (typed === undefined) {
    const value = own[name]
    if (value === undefined)
      throw new UsageError(`--env ${name}: the environment variable ${name} is not set; set it, or write ${name}=VALUE`)
    return [name, value]
  }
  if (typed !== '' && isSecretVariable(name, typed))
    throw new UsageError(
      `--env ${name}=… contains a secret, which every user of this machine could see; set the variable ${name}, and write --env ${name}`,
    )
  return [name, typed]
}

/** The words of a command line, with the values of `--env` removed. */
export function withoutEnvValues(words: readonly string[]): string[] {
  return words.map((word, index) => {
    const [, prefix = '', name] = (words[index - 1] === '--env' ? /^()([^=]*)=/ : /^(--env=)([^=]*)=/).exec(word) ?? []
    return name === undefined ? word : `${prefix}${name}`
  })
}

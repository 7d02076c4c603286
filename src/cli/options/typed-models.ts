import { didYouMean } from '../../did-you-mean.ts'
import { ManyworldsError } from '../../errors.ts'
import { isModelName, NAMED } from '../../models/check-settings.ts'
import { checkGivenModels, isRecord } from '../../models/driver/given-models.ts'
import { problemIn, readModelsFile } from '../../models/driver/models-file.ts'
import { secretHeaders } from '../../models/secrets.ts'
import type { ModelSettings, ModelsConfig } from '../../models/settings.ts'
import { UsageError } from '../frame/usage-error.ts'

/** The values of `--model`: settings, or the name of another model whose settings to use. */
export interface TypedModels {
  readonly settings: ReadonlyMap<string, ModelSettings>
  readonly unusable: ReadonlyMap<string, string>
  readonly others: ReadonlyMap<string, string>
}

/** Reads the values of `--model`. Throws for mistakes before anything starts. */
export function typedModels(words: readonly string[]): TypedModels {
  const settings = new Map<string, ModelSettings>()
  const unusable = new Map<string, string>()
  const others = new Map<string, string>()
  for (const word of words) {
    const [, name = '', value = ''] = /^([^=]*)=(.*)$/s.exec(word) ?? []
    if (name === '' || value === '')
      throw new UsageError(`--model "${word}": write NAME=OTHER, NAME=URL#MODEL or NAME={…}`)
    if (!isModelName(name)) throw new UsageError(`--model "${word}": a name ${NAMED}`)
    if ([settings, unusable, others].some((known) => known.has(name)))
      throw new UsageError(`--model defines "${name}" twice`)
    const given = settingsIn(name, value)
    if (given === undefined) {
      if (!isModelName(value)) throw new UsageError(`--model "${word}": "${value}" is not a name, URL#MODEL or {…}`)
      others.set(name, value)
      continue
    }
    refuseSecrets(name, given)
    const checked = checkGivenModels({ [name]: given }, '--model')
    for (const [key, found] of Object.entries(checked.models)) settings.set(key, found)
    for (const [key, why] of Object.entries(checked.unusable)) unusable.set(key, why)
  }
  return { settings, unusable, others }
}

/**
 * Refuses secrets, because every user of this machine can see the command line, and the printed command that resumes a
 * run repeats it.
 */
function refuseSecrets(name: string, given: unknown): void {
  if (!isRecord(given)) return
  const { baseURL, headers } = given
  const typed = isRecord(headers) ? Object.entries(headers).filter(([, value]) => !String(value).includes('${')) : []
  const written = Object.fromEntries(typed.map(([key, value]) => [key, String(value)]))
  const password = typeof baseURL === 'string' && URL.canParse(baseURL) ? new URL(baseURL).password : ''
  if (secretHeaders({ headers: written }).length === 0 && (password === '' || password.includes('$'))) return
  throw new UsageError(
    `--model ${name}=… contains a secret, which every user of this machine could see; put it into a variable and write \${NAME} in its place, or \`apiKeyEnv\``,
  )
}

/** The settings in a value; undefined if it is the name of another model. */
function settingsIn(name: string, value: string): unknown {
  if (value.startsWith('{')) {
    try {
      return JSON.parse(value)
    } catch {
      throw new UsageError(`--model ${name}={…} is not JSON: ${problemIn(value) ?? 'it ends too early'}`)
    }
  }
  if (!/^https?:/i.test(value)) return undefined
  const hash = value.indexOf('#')
  if (hash < 0 || hash === value.length - 1)
    throw new UsageError(`--model ${name}=${value}: which model of that server? Write ${name}=URL#MODEL`)
  // Nothing is kept of an earlier model with this name, in particular not its key: this is another server.
  return { baseURL: value.slice(0, hash), model: value.slice(hash + 1) }
}

/** The models of a run: those of its code, overridden by typed ones. `file`: the models file, where `NAME=OTHER` also looks. */
export function withTyped(typed: TypedModels, models: ModelsConfig, file: string | false | undefined): ModelsConfig {
  if (typed.settings.size + typed.unusable.size + typed.others.size === 0) return models
  for (const why of typed.unusable.values()) throw new ManyworldsError('CONFIG_INVALID', why)
  const own = { ...models, ...Object.fromEntries(typed.settings) }
  if (typed.others.size === 0) return own
  const given = readModelsFile(file)
  const known: ModelsConfig = { ...given?.models, ...own }
  const meant = [...typed.others].map(([name, other]) => {
    const settings = Object.hasOwn(known, other) ? known[other] : undefined
    if (settings) return [name, settings] as const
    const why = given && Object.hasOwn(given.unusable, other) ? given.unusable[other]! : noSuch(name, other, known)
    throw new ManyworldsError('CONFIG_INVALID', why)
  })
  return { ...own, ...Object.fromEntries(meant) }
}

function noSuch(name: string, other: string, known: ModelsConfig): string {
  const names = Object.keys(known)
  const there = names.length === 0 ? 'none' : names.join(', ')
  return `--model ${name}=${other}: unknown model '${other}'; the run and its models file have ${there}${didYouMean(other, names)}`
}

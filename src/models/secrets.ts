import { LEAST_SECRET_CHARS } from '../redaction/forms.ts'
import { isLanguageModel } from './language-model.ts'
import type { ModelSettings, ModelsConfig } from './settings.ts'

const SECRET_HEADER = /auth|key|token|secret|cookie|password|credential/i

const settingsIn = (models: ModelsConfig | undefined): ModelSettings[] =>
  Object.values(models ?? {}).filter((given): given is ModelSettings => !isLanguageModel(given))

/** Variables that have keys of models: workers do not get them. */
export const keyVariables = (models: ModelsConfig | undefined): string[] => {
  const settings = settingsIn(models)
  const named = settings.flatMap(({ apiKeyEnv }) => apiKeyEnv ?? [])
  return [...new Set([...named, ...variablesOf(settings.flatMap(secretHeaders))])]
}

/** Where secret headers come from, in a script or by `${NAME}` in a file: the variables that have such a value. */
const variablesOf = (secrets: readonly string[]): string[] =>
  secrets.length === 0
    ? []
    : Object.entries(process.env).flatMap(([name, value = '']) =>
        value.length >= LEAST_SECRET_CHARS && secrets.includes(value.trim()) ? [name] : [],
      )

/** Values of keys, of headers that may be keys, and passwords in addresses: they are neither recorded nor printed. */
export const modelSecrets = (models: ModelsConfig | undefined): string[] => [
  ...keyVariables(models).flatMap((name) => process.env[name]?.trim() || []),
  ...settingsIn(models).flatMap(secretHeaders),
  ...settingsIn(models).flatMap(passwords),
]

const passwords = ({ baseURL, replicas = [] }: ModelSettings): string[] =>
  [baseURL, ...replicas].flatMap((url) => new URL(url).password || []).flatMap((text) => [text, decoded(text)])

/** What is no encoding is a text as it is. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** Values of headers whose names sound like it. */
export const secretHeaders = ({ headers = {} }: Pick<ModelSettings, 'headers'>): string[] =>
  Object.entries(headers).flatMap(([name, value]) => (SECRET_HEADER.test(name) ? [value, ...schemeless(value)] : []))

/** Without `Bearer`: the key alone is the secret. */
const schemeless = (value: string): string[] => {
  const [, key] = /^\w+ +(\S.*)$/.exec(value) ?? []
  return key === undefined ? [] : [key]
}

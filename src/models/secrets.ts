import { LEAST_SECRET_CHARS } from '../redaction/forms.ts'
import { isLanguageModel } from './language-model.ts'
import { isSecretName, secretTextsIn } from './secret-fields.ts'
import type { ModelSettings, ModelsConfig } from './settings.ts'

const SECRET_HEADER = /auth|key|token|secret|cookie|password|credential/i

const settingsIn = (models: ModelsConfig | undefined): ModelSettings[] =>
  Object.values(models ?? {}).filter((given): given is ModelSettings => !isLanguageModel(given))

/** Environment variables that contain API keys, which are withheld from workers. */
export const keyVariables = (models: ModelsConfig | undefined): string[] => {
  const settings = settingsIn(models)
  const named = settings.flatMap(({ apiKeyEnv }) => apiKeyEnv ?? [])
  return [...new Set([...named, ...variablesOf(settings.flatMap(secretHeaders))])]
}

/**
 * The environment variables from which the values of secret headers were taken, in a script or by `${NAME}` in a file.
 */
const variablesOf = (secrets: readonly string[]): string[] =>
  secrets.length === 0
    ? []
    : Object.entries(process.env).flatMap(([name, value = '']) =>
        value.length >= LEAST_SECRET_CHARS && secrets.includes(value.trim()) ? [name] : [],
      )

/** Keys, headers and body fields that may contain keys, and passwords in URLs: they must be neither recorded nor printed. */
export const modelSecrets = (models: ModelsConfig | undefined): string[] => [
  ...keyVariables(models).flatMap((name) => process.env[name]?.trim() || []),
  ...settingsIn(models).flatMap(secretHeaders),
  ...settingsIn(models).flatMap(passwords),
  ...settingsIn(models).flatMap(({ extraBody }) => secretTextsIn(extraBody)),
]

const passwords = ({ baseURL, replicas = [] }: ModelSettings): string[] =>
  [baseURL, ...replicas]
    .map((url) => new URL(url))
    .flatMap(({ password, searchParams }) => [
      ...(password ? [password, decoded(password)] : []),
      ...[...searchParams].flatMap(([name, value]) => (isSecretName(name) ? [value] : [])),
    ])

/** Text that is not URL-encoded is returned unchanged. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** The values of headers whose names suggest a secret. */
export const secretHeaders = ({ headers = {} }: Pick<ModelSettings, 'headers'>): string[] =>
  Object.entries(headers).flatMap(([name, value]) => (SECRET_HEADER.test(name) ? [value, ...schemeless(value)] : []))

/** The value without a scheme such as `Bearer`, because the key alone is the secret. */
const schemeless = (value: string): string[] => {
  const [, key] = /^\w+ +(\S.*)$/.exec(value) ?? []
  return key === undefined ? [] : [key]
}

import { issuesText, shownValue } from '../../config-issues.ts'
import { ManyworldsError } from '../../errors.ts'
import { modelSettings, modelsSchema } from '../check-settings.ts'
import type { ModelSettings } from '../settings.ts'
import { expandVariables } from './variables.ts'

/** Models configured outside of the code: in a file, or on the command line. */
export interface GivenModels {
  readonly models: Readonly<Record<string, ModelSettings>>
  /**
   * Why other models cannot be used: a variable is not set. This is an error only for a run that calls them, because a
   * file has models for several scripts, and not everyone has all keys.
   */
  readonly unusable: Readonly<Record<string, string>>
}

/** Placeholders for values whose variables are missing, while the rest is validated. */
const STAND_IN = { baseURL: 'http://unknown.invalid', other: 'unknown' }

/**
 * Validates models and expands their variables. `from`: where they are configured, such as "models.json". `needKeys`:
 * whether API keys must be set. Throws one error with all mistakes.
 */
export function checkGivenModels(given: unknown, from: string, needKeys = true): GivenModels {
  if (!isRecord(given))
    throw invalid(from, `must be an object of models by name, such as ${EXAMPLE}; it is ${shownValue(given)}`)
  const missing = new Map<string, string[]>()
  const malformed: string[] = []
  const expand = (name: string, key: string, text: unknown, standIn: string): unknown => {
    if (typeof text !== 'string' || !text.includes('${')) return text
    const expanded = expandVariables(text, process.env)
    if (expanded.malformed !== undefined)
      malformed.push(`\`${name}.${key}\` contains '${expanded.malformed}'; write environment variables as \${NAME}`)
    if (expanded.missing.length === 0) return expanded.text
    missing.set(name, [...(missing.get(name) ?? []), ...expanded.missing])
    return standIn
  }
  const models = Object.fromEntries(
    Object.entries(given).map(([name, settings]) => [name, withVariables(settings, expand.bind(undefined, name))]),
  )
  if (malformed.length > 0) throw invalid(from, malformed.join('; '))
  const result = modelsSchema.safeParse(models)
  // Values are shown unexpanded, because variables may contain secrets.
  if (!result.success) throw invalid(from, issuesText(result.error.issues, given, keysOf))
  const unusable: Record<string, string> = {}
  const usable: Record<string, ModelSettings> = {}
  for (const [name, settings] of Object.entries(result.data as Record<string, ModelSettings>)) {
    const { apiKeyEnv } = settings
    const unset = [...(missing.get(name) ?? [])]
    if (needKeys && apiKeyEnv !== undefined && !process.env[apiKeyEnv]?.trim()) unset.push(apiKeyEnv)
    if (unset.length === 0) usable[name] = settings
    else unusable[name] = `${from}: model '${name}' needs ${variables([...new Set(unset)])}`
  }
  return { models: usable, unusable }
}

export const EXAMPLE = `{ "small": { "baseURL": "http://127.0.0.1:8000/v1", "model": "qwen3" } }`

const variables = (names: readonly string[]) =>
  names.length === 1
    ? `the environment variable ${names[0]}, which is not set or empty`
    : `the environment variables ${names.join(', ')}, which are not set or empty`

/** Expands variables in the address, the model name and the headers. */
function withVariables(settings: unknown, expand: (key: string, text: unknown, standIn: string) => unknown): unknown {
  if (!isRecord(settings)) return settings
  const { baseURL, model, headers, replicas } = settings
  return {
    ...settings,
    ...('baseURL' in settings && { baseURL: expand('baseURL', baseURL, STAND_IN.baseURL) }),
    ...('model' in settings && { model: expand('model', model, STAND_IN.other) }),
    ...(isRecord(headers) && {
      headers: Object.fromEntries(
        Object.entries(headers).map(([name, value]) => [name, expand(`headers.${name}`, value, STAND_IN.other)]),
      ),
    }),
    ...(Array.isArray(replicas) && {
      replicas: replicas.map((url, index) => expand(`replicas.${index}`, url, STAND_IN.baseURL)),
    }),
  }
}

export const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const keysOf = (part: string): string[] => (part !== '' && !part.includes('.') ? Object.keys(modelSettings.shape) : [])

export const invalid = (from: string, what: string, cause?: unknown): ManyworldsError =>
  new ManyworldsError('CONFIG_INVALID', `${from}: ${what}`, cause === undefined ? undefined : { cause })

import * as z from 'zod/mini'
import { type GivenModel, isLanguageModel } from './language-model.ts'

const isAddress = (text: string) => {
  try {
    return /^https?:$/.test(new URL(text).protocol)
  } catch {
    return false
  }
}

const address = z.string().check(
  z.refine(isAddress, "must be a URL such as 'https://api.example.com/v1'"),
  z.refine(
    (text) => !/\/completions\/?$/.test(text),
    'must not include `/chat/completions`, which is appended automatically',
  ),
)
const text = z.string().check(z.minLength(1))
const perMinute = z.number().check(z.positive(), z.maximum(1_000_000_000))
const milliseconds = z.number().check(z.positive(), z.maximum(86_400_000))
const usd = z.number().check(z.minimum(0))

/** Settings of one model. */
export const modelSettings = z.strictObject({
  baseURL: address,
  model: text,
  apiKeyEnv: z.optional(
    z.string().check(z.regex(/^[A-Za-z_]\w*$/, 'must be the name of an environment variable, not the key itself')),
  ),
  requestsPerMinute: z.optional(perMinute),
  tokensPerMinute: z.optional(perMinute),
  maxConcurrent: z.optional(z.number().check(z.int(), z.minimum(1), z.maximum(100_000))),
  price: z.optional(z.strictObject({ input: z.optional(usd), output: z.optional(usd), cachedInput: z.optional(usd) })),
  headers: z.optional(z.record(z.string(), z.string())),
  extraBody: z.optional(z.record(z.string(), z.unknown())),
  replicas: z.optional(z.array(address)),
  via: z.optional(z.enum(['driver', 'direct'])),
  tokens: z.optional(z.union([z.boolean(), z.literal('processed')], "must be true, false or 'processed'")),
  timeoutMs: z.optional(milliseconds),
  permitTimeoutMs: z.optional(milliseconds),
  maxRetries: z.optional(z.number().check(z.int(), z.minimum(0), z.maximum(100))),
})

const NAME = /^[\w.-]{1,64}$/
export const NAMED = "must have 1 to 64 letters, digits, '-', '_' or '.'"

export const isModelName = (text: string): boolean => NAME.test(text)

/** `models` of a run configuration, without provider objects. */
export const modelsSchema = z.record(z.string().check(z.regex(NAME, NAMED)), modelSettings)

/** Provider objects cannot be validated like settings, so they are separated first. */
export function splitModels(models: unknown): { settings: unknown; objects: Record<string, GivenModel> } {
  if (typeof models !== 'object' || models === null || Array.isArray(models)) return { settings: models, objects: {} }
  const entries = Object.entries(models)
  const isObject = ([, given]: [string, unknown]) =>
    typeof given === 'object' && given !== null && isLanguageModel(given)
  return {
    settings: Object.fromEntries(entries.filter((entry) => !isObject(entry))),
    objects: Object.fromEntries(entries.filter(isObject)) as Record<string, GivenModel>,
  }
}

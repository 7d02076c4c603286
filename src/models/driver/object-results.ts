import type { CallUsage, Content, FinishReason, GenerateResult } from '../language-model.ts'

/**
 * Converts the result of a provider object to plain data that can be sent and stored: headers may contain secrets, and
 * provider extras may not be plain. Throws if it is not a result.
 */
export function resultIn(given: unknown): GenerateResult {
  const result = objectIn(given)
  if (!Array.isArray(result.content) || result.content.some((part) => typeof objectIn(part).type !== 'string'))
    throw new TypeError('the result has no `content` list; use a model object of AI SDK 7 (specification v4)')
  const { id, timestamp, modelId, body } = objectIn(result.response)
  const metadata = plain(result.providerMetadata) as GenerateResult['providerMetadata']
  const text = plain(body)
  return {
    content: result.content.map((part) => plain(part)).filter((part) => part !== undefined) as Content[],
    finishReason: finishIn(result.finishReason),
    usage: usageIn(result.usage),
    warnings: (Array.isArray(result.warnings) ? (plain(result.warnings) ?? []) : []) as GenerateResult['warnings'],
    ...(metadata && { providerMetadata: metadata }),
    response: {
      ...(typeof id === 'string' && { id }),
      ...(timestamp instanceof Date && { timestamp }),
      ...(typeof modelId === 'string' && { modelId }),
      ...(text !== undefined && { body: text }),
    },
  }
}

const objectIn = (value: unknown): Record<string, unknown> =>
  typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}

/** A copy without values that cannot be sent (functions, sockets); undefined if nothing is left. */
function plain(value: unknown): unknown {
  try {
    return structuredClone(value)
  } catch {
    try {
      const text = JSON.stringify(value)
      return text === undefined ? undefined : JSON.parse(text)
    } catch {
      return undefined
    }
  }
}

/** A string before version 4 of the specification. */
function finishIn(given: unknown): FinishReason {
  if (typeof given === 'string') return { unified: unifiedIn(given), raw: given }
  const { unified, raw } = objectIn(given)
  return { unified: unifiedIn(unified), raw: typeof raw === 'string' ? raw : undefined }
}

const UNIFIED: readonly FinishReason['unified'][] = ['stop', 'length', 'content-filter', 'tool-calls', 'error', 'other']
const unifiedIn = (given: unknown) => UNIFIED.find((one) => one === given) ?? 'other'

function usageIn(given: unknown): CallUsage {
  const { inputTokens, outputTokens } = objectIn(given)
  const input = tokensIn(inputTokens)
  const output = tokensIn(outputTokens)
  return {
    inputTokens: {
      ...{ total: input('total'), noCache: input('noCache') },
      ...{ cacheRead: input('cacheRead'), cacheWrite: input('cacheWrite') },
    },
    outputTokens: { total: output('total'), text: output('text'), reasoning: output('reasoning') },
  }
}

/** A single number before version 3 of the specification. */
const tokensIn = (given: unknown) => (name: string) => {
  const value = typeof given === 'number' && name === 'total' ? given : objectIn(given)[name]
  return typeof value === 'number' && Number.isFinite(value) && value >= 0 ? value : undefined
}

import { ManyworldsError } from '../../errors.ts'
import { oneLine } from '../../text/escape-controls.ts'
import type { CacheIdentity } from './cache-key.ts'

/** How much of a question is shown. */
const SHOWN_CHARS = 80

/** The error of a call that is not in the cache, with `cache: 'replay'`. */
export function cacheMiss({ server, model, body, seed, rollout, occurrence }: CacheIdentity): ManyworldsError {
  const which = `seed ${seed}, rollout ${rollout}, occurrence ${occurrence}`
  return new ManyworldsError(
    'CACHE_MISS',
    `the store has no cached answer of model '${oneLine(model)}' at ${oneLine(server)} to ${questionOf(body)} (${which}), and \`cache: 'replay'\` does not call models. Run it once with \`cache: true\` (--cache) and the same store; a cached answer is found if messages, tools, sampling and seed are the same`,
  )
}

/** The start of the last user message, or else of the body, on one line and in quotes. */
function questionOf(body: string): string {
  const text = lastQuestion(body) ?? body
  const start = Array.from(text.slice(0, 2 * SHOWN_CHARS).trim())
    .slice(0, SHOWN_CHARS)
    .join('')
  return `"${oneLine(start)}${start.length < text.trim().length ? '…' : ''}"`
}

function lastQuestion(body: string): string | undefined {
  try {
    const { messages, prompt } = JSON.parse(body) as { messages?: unknown; prompt?: unknown }
    if (typeof prompt === 'string') return prompt
    if (!Array.isArray(messages)) return undefined
    return textOf((messages as Message[]).findLast((message) => message?.role === 'user')?.content)
  } catch {
    return undefined
  }
}

interface Message {
  readonly role?: unknown
  readonly content?: unknown
}

/** Content is a string, or a list of parts, some of which are text. */
function textOf(content: unknown): string | undefined {
  if (typeof content === 'string') return content
  if (!Array.isArray(content)) return undefined
  const texts = (content as { text?: unknown }[]).map((part) => part?.text)
  return texts.find((text) => typeof text === 'string')
}

import { listOf } from '../../models/completion.ts'
import { completionIn } from '../../models/read-completion.ts'
import type { ModelStep } from '../../trajectory/step.ts'

/** vLLM sends these instead of texts if it is configured to. */
const ID_TEXT = /^token_id:\d+$/
/** A text of a token is a few characters. */
const MOST_TOKEN_CHARS = 1000

/** The texts of the sampled tokens of a call, if the server sent one for each. */
export function tokenTexts({ tokens, reply }: ModelStep): string[] | undefined {
  if (tokens === null || tokens.completion.length === 0) return undefined
  const [choice] = listOf(completionIn(reply.wire)?.choices)
  const content = listOf(choice?.logprobs?.content)
  if (content.length !== tokens.completion.length) return undefined
  const texts = content.map((one) => one?.token)
  const isText = (text: unknown): text is string =>
    typeof text === 'string' && text.length <= MOST_TOKEN_CHARS && !ID_TEXT.test(text)
  return texts.every(isText) ? texts : undefined
}

import { hash, randomUUID } from 'node:crypto'
import type { Asked } from './request.ts'
import type { Sampled } from './sampling.ts'
import { callsIn } from './tool-calls.ts'

/** A reply in the format of OpenAI's chat completions, with token ids as in vLLM. */
export function chatAnswer(asked: Asked, sampled: Sampled): object {
  const visible = visibleText(asked, sampled)
  const hasTools = asked.prompt.kind === 'chat' && asked.prompt.tools.length > 0
  const { text, calls } = hasTools ? callsIn(visible) : { text: visible, calls: [] }
  const message = {
    role: 'assistant',
    content: calls.length > 0 && text === '' ? null : text,
    ...(calls.length > 0 && {
      tool_calls: calls.map((call, index) => ({
        id: callId(sampled, index),
        type: 'function',
        function: call,
      })),
    }),
  }
  return {
    ...{ id: `chatcmpl-${randomUUID()}`, object: 'chat.completion', created: now(), model: asked.model },
    choices: [{ ...choiceOf(asked, sampled, calls.length > 0), message }],
    ...common(asked, sampled),
  }
}

export function textAnswer(asked: Asked, sampled: Sampled): object {
  return {
    ...{ id: `cmpl-${randomUUID()}`, object: 'text_completion', created: now(), model: asked.model },
    choices: [{ ...choiceOf(asked, sampled, false), text: visibleText(asked, sampled) }],
    ...common(asked, sampled),
  }
}

const now = () => Math.floor(Date.now() / 1000)

/** The text before the first stop text; the ids include the stop text's tokens. */
function visibleText({ sampling }: Asked, { text }: Sampled): string {
  const ends = sampling.stopTexts.map((stop) => text.indexOf(stop)).filter((index) => index >= 0)
  return ends.length === 0 ? text : text.slice(0, Math.min(...ends))
}

/**
 * The same reply gets the same id, because chat templates may print it, and a resumed training must see the same
 * prompts. Nine characters, because Mistral's templates refuse other lengths.
 */
const callId = ({ promptIds, ids }: Sampled, index: number) =>
  `c${hash('sha256', `${promptIds.join()};${ids.join()};${index}`).slice(0, 8)}`

function choiceOf(asked: Asked, sampled: Sampled, hasCalls: boolean): object {
  const { ids, logProbs, pieces, truncated, finish } = sampled
  return {
    index: 0,
    finish_reason: hasCalls && finish === 'stop' ? 'tool_calls' : finish,
    logprobs: asked.logprobs
      ? {
          content: Array.from(ids, (id, index) => {
            const token = pieces.get(id) ?? ''
            return { id, token, bytes: [...Buffer.from(token)], logprob: logProbs[index], top_logprobs: [] }
          }),
          // Of the distribution sampled from: after temperature, and after top_p, top_k and min_p if they removed
          // tokens.
          ...{ kind: asked.sampling.temperature === 0 ? 'raw' : 'processed', truncated },
        }
      : null,
    ...(asked.tokenIds && { token_ids: [...ids] }),
  }
}

function common(asked: Asked, { promptIds, ids, prefixUsed }: Sampled): object {
  return {
    ...(asked.tokenIds && { prompt_token_ids: [...promptIds] }),
    ...(asked.prompt.kind === 'chat' && asked.prompt.prefix && { prompt_prefix_used: prefixUsed }),
    usage: {
      prompt_tokens: promptIds.length,
      completion_tokens: ids.length,
      total_tokens: promptIds.length + ids.length,
    },
  }
}

import { hash, randomUUID } from 'node:crypto'
import type { Asked } from './request.ts'
import type { Sampled } from './sampling.ts'
import { callsIn } from './tool-calls.ts'

/** A reply as OpenAI's chat completions have it, with token ids as vLLM gives them. */
export function chatAnswer(asked: Asked, sampled: Sampled): object {
  const said = visibleText(asked, sampled)
  const hasTools = asked.prompt.kind === 'chat' && asked.prompt.tools.length > 0
  const { text, calls } = hasTools ? callsIn(said) : { text: said, calls: [] }
  const message = {
    role: 'assistant',
    content: calls.length > 0 && text === '' ? null : text,
    ...(calls.length > 0 && {
      tool_calls: calls.map((call, place) => ({
        id: callId(sampled, place),
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

/** Without the text that ended it; its tokens are in the ids. */
function visibleText({ sampling }: Asked, { text }: Sampled): string {
  const ends = sampling.stopTexts.map((stop) => text.indexOf(stop)).filter((place) => place >= 0)
  return ends.length === 0 ? text : text.slice(0, Math.min(...ends))
}

/**
 * The same for the same reply, because chat templates may show it, and a resumed training must see the same prompts. Of nine characters:
 * the templates of Mistral refuse others.
 */
const callId = ({ promptIds, ids }: Sampled, place: number) =>
  `c${hash('sha256', `${promptIds.join()};${ids.join()};${place}`).slice(0, 8)}`

function choiceOf(asked: Asked, sampled: Sampled, hasCalls: boolean): object {
  const { ids, logProbs, pieces, truncated, finish } = sampled
  return {
    index: 0,
    finish_reason: hasCalls && finish === 'stop' ? 'tool_calls' : finish,
    logprobs: asked.logprobs
      ? {
          content: Array.from(ids, (id, place) => {
            const token = pieces.get(id) ?? ''
            return { id, token, bytes: [...Buffer.from(token)], logprob: logProbs[place], top_logprobs: [] }
          }),
          // Of the distribution that was drawn from: at its temperature, and after top_p, top_k and min_p where they took tokens away.
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

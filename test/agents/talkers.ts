import { defineAgent } from '../../dist/index.js'
import type { CallOptions, Content, PromptMessage } from '../../dist/models/language-model.js'

export interface Talk {
  readonly key: string
  readonly turns: readonly Turn[]
}

/** What is said to the model, and how. */
export interface Turn {
  readonly how: 'sdk' | 'generate' | 'complete' | 'complete ids'
  readonly text: string
  readonly image?: string
  readonly options?: object
  /** Forgets what was said before. */
  readonly anew?: boolean
  /** Takes thoughts out of what was said before. */
  readonly prunes?: boolean
}

/** Talks to a model over several turns; what the model called is answered, with its arguments parsed as the AI SDK does it. */
export const talker = defineAgent({
  name: 'talker',
  run: async ({ key, turns }: Talk, ctx) => {
    let prompt: PromptMessage[] = []
    const ids: number[] = []
    for (const { how, text, image, options = {}, anew, prunes } of turns) {
      if (how === 'complete' || how === 'complete ids') {
        ids.push(...Buffer.from(text))
        const given = how === 'complete' ? text : ids
        const { tokens } = await ctx.complete({ model: 'm', prompt: given, extraBody: { user: key, ...options } })
        if (how === 'complete ids') ids.push(...(tokens?.ids ?? []))
        continue
      }
      if (anew) prompt = []
      if (prunes) prompt = prompt.map(withoutThoughts)
      const parts: Extract<PromptMessage, { role: 'user' }>['content'] = [
        { type: 'text', text },
        ...(image === undefined ? [] : [imagePart(image)]),
      ]
      prompt.push({ role: 'user', content: parts })
      if (how === 'generate') {
        const messages = prompt.flatMap((message) =>
          message.role === 'user' ? [{ role: 'user' as const, content: message.content }] : [],
        )
        await ctx.generate({ model: 'm', prompt: messages, extraBody: { user: key, ...options } })
        continue
      }
      const call: CallOptions = { prompt, ...options, providerOptions: { manyworlds: { user: key, ...options } } }
      const { content } = await ctx.model('m').doGenerate(call as never)
      prompt.push({ role: 'assistant', content: (content as Content[]).map(parsed) })
      const results = (content as Content[]).flatMap((part) => (part.type === 'tool-call' ? [resultOf(part)] : []))
      if (results.length > 0) prompt.push({ role: 'tool', content: results })
    }
  },
})

const imagePart = (data: string) => ({
  type: 'file' as const,
  mediaType: 'image/png',
  data: { type: 'data' as const, data },
})

const withoutThoughts = (message: PromptMessage): PromptMessage =>
  message.role === 'assistant'
    ? { ...message, content: message.content.filter(({ type }) => type !== 'reasoning') }
    : message

function parsed(part: Content): Extract<PromptMessage, { role: 'assistant' }>['content'][number] {
  if (part.type !== 'tool-call') return part
  try {
    return { ...part, input: JSON.parse(part.input) as unknown }
  } catch {
    return part
  }
}

const resultOf = ({ toolCallId, toolName, input }: Extract<Content, { type: 'tool-call' }>) => ({
  ...{ type: 'tool-result' as const, toolCallId, toolName },
  output: { type: 'text' as const, value: `got ${input}` },
})

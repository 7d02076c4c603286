// A model that is an object of the driver's own, and tasks that call it through their workers.
import { generateText } from 'ai'
import { defineAgent, Runners } from 'manyworlds'

interface Asked {
  readonly kind: string
}

export const caller = defineAgent({
  name: 'caller',
  run: async ({ kind }: Asked, ctx) => {
    if (kind === 'generate') return (await ctx.generate({ model: 'own', prompt: 'generate' })).text
    const { text } = await generateText({
      model: ctx.model('own'),
      maxRetries: 0,
      temperature: 0.5,
      maxOutputTokens: 7,
      messages: [
        {
          role: 'user',
          content: [
            { type: 'text', text: kind },
            { type: 'file', mediaType: 'image/png', data: new URL('https://example.com/a%20b.png?x=1') },
            { type: 'file', mediaType: 'image/png', data: Uint8Array.from([0x89, 0x50, 0x4e, 0x47, 0, 255]) },
          ],
        },
      ],
    })
    return text
  },
})

const usage = {
  inputTokens: { total: 3, noCache: 3, cacheRead: undefined, cacheWrite: undefined },
  outputTokens: { total: 2, text: 2, reasoning: undefined },
}
const answer = (text: string) => ({
  content: [{ type: 'text', text }],
  finishReason: { unified: 'stop', raw: 'end_turn' },
  usage,
  warnings: [],
})

class ApiCallError extends Error {
  readonly statusCode: number
  readonly responseHeaders: Record<string, string>
  readonly responseBody: string
  readonly isRetryable: boolean

  constructor(statusCode: number, message: string, headers: Record<string, string> = {}) {
    super(message)
    this.statusCode = statusCode
    this.responseHeaders = headers
    this.responseBody = JSON.stringify({ error: { message } })
    this.isRetryable = statusCode === 429 || statusCode >= 500
  }
}

const tries: Record<string, number> = {}
let aborted = 0

function shownPart(part: Record<string, unknown>): unknown {
  const { type, data } = part as { type: string; data?: { type: string; url?: unknown; data?: unknown } }
  if (type !== 'file') return type
  return data!.url instanceof URL
    ? `URL ${data!.url.href}`
    : data!.data instanceof Uint8Array
      ? `bytes ${[...data!.data]}`
      : typeof data!.data
}

const own = {
  specificationVersion: 'v4',
  provider: 'own',
  modelId: 'own-1',
  supportedUrls: { 'image/*': [/^https:/] },
  async doGenerate(options: { prompt: { content: Record<string, unknown>[] }[]; abortSignal: AbortSignal }) {
    const parts = options.prompt.at(-1)!.content
    const kind = parts[0]!.text as string
    tries[kind] = (tries[kind] ?? 0) + 1
    switch (kind) {
      case 'parts':
        return answer(JSON.stringify(parts.map(shownPart)))
      case '429':
        if (tries[kind] <= 2) throw new ApiCallError(429, 'slow down', { 'Retry-After-Ms': '20' })
        return answer(`after ${tries[kind]} tries`)
      case '400':
        throw new ApiCallError(400, "This model's maximum context length is 8 tokens")
      case 'words':
        throw 'just words'
      case 'nothing':
        return undefined
      case 'half':
        return { content: [{ type: 'text', text: 'half' }] }
      case 'functions':
        return {
          ...answer('with functions'),
          providerMetadata: { own: { callback: () => 1, kept: 1 } },
          response: { id: 'r1', modelId: 'own-1-b', headers: { secret: 'x' }, body: { raw: true, close: () => 1 } },
        }
      case 'filtered':
        return { ...answer(kind), finishReason: { unified: 'content-filter', raw: 'refusal' } }
      case 'old':
        return {
          content: [{ type: 'text', text: 'old' }],
          finishReason: 'stop',
          usage: { inputTokens: 5, outputTokens: 6 },
        }
      case 'hangs':
        options.abortSignal.addEventListener('abort', () => aborted++)
        return new Promise(() => {})
      default:
        return answer(kind)
    }
  },
  async doStream() {
    throw new Error('nobody streams')
  },
}

const kinds = ['parts', '429', '400', 'words', 'nothing', 'half', 'functions', 'filtered', 'old', 'generate']
const responses = await Runners.runTask(
  kinds.map((kind) => caller.task({ kind }, { id: kind })),
  { models: { own: own as never }, workerNum: 2, store: false, progress: false },
)
for (const kind of kinds) {
  const { answer, error, trajectory } = responses.get(kind)!
  const steps = trajectory.flatMap((step) =>
    step.kind === 'model'
      ? [
          {
            ...{
              server: step.server,
              finish: step.finish,
              usage: step.usage,
              retries: step.retries,
              wire: step.reply.wire,
            },
            ...{ sampling: step.sampling, request: JSON.parse(step.request.wire) as unknown },
          },
        ]
      : [],
  )
  console.log(JSON.stringify({ kind, tries: tries[kind], answer, code: error?.code, message: error?.message, steps }))
}
const hanging = await Runners.runTask(caller.task({ kind: 'hangs' }, { timeoutMs: 4000 }), {
  ...{ models: { own: own as never }, workerNum: 1, store: false, progress: false, maxAttempts: 1 },
})
// It may be told after the response is there.
for (let tries = 0; aborted === 0 && tries < 200; tries++) await new Promise((done) => setTimeout(done, 100))
console.log(JSON.stringify({ kind: 'hangs', code: hanging.error?.code, aborted }))
await Runners.shutdown()

import { hasToolCall, jsonSchema, Output, streamText, tool } from 'ai'
import * as z from 'zod'
import { llmAgent } from '../../dist/agents/index.js'
import { defineAgent, defineGrader } from '../../dist/index.js'

/** Asks a model one question. */
export const asker = defineAgent({
  name: 'asker',
  run: async (
    { model, prompt = 'hello', body }: { model: string; prompt?: string; body?: Record<string, unknown> },
    ctx,
  ) => {
    const { text, usage, finish } = await ctx.generate({ model, prompt, ...(body && { extraBody: body }) })
    return { text, usage, finish }
  },
})

/** Does not wait for its second answer; `waits`: until the server has the request. */
export const forgetful = defineAgent({
  name: 'forgetful',
  run: async ({ url, waits }: { url: string; waits: boolean }, ctx) => {
    await ctx.generate({ model: 'good', prompt: 'first' })
    const prompt = `forgotten by ${ctx.task.id}`
    void ctx.generate({ model: 'slow', prompt })
    const requests = `${url}/_scripted/requests?${new URLSearchParams({ body: prompt })}`
    while (waits && ((await (await fetch(requests)).json()) as unknown[]).length === 0)
      await new Promise((resolve) => setTimeout(resolve, 20))
    return 'done'
  },
})

/** Two of them at once, as sub-tasks. */
export const both = defineAgent({
  name: 'both',
  run: async ({ model }: { model: string }, ctx) => {
    const tasks = ['a', 'b'].map((prompt) => asker.task({ model, prompt }, { id: prompt }))
    const responses = [...(await ctx.runTask(tasks)).values()]
    if (responses.every(({ success }) => !success)) throw new Error('neither has an answer')
    return responses.length
  },
})

/** Does not say why it failed. */
export const vague = defineAgent({
  name: 'vague',
  run: async ({ model }: { model: string }, ctx) => {
    try {
      return (await ctx.generate({ model, prompt: 'hello' })).text
    } catch {
      throw new Error('something is wrong')
    }
  },
})

/** The same through the AI SDK, as a stream. */
export const streamer = defineAgent({
  name: 'streamer',
  run: async ({ model }: { model: string }, ctx) => {
    const { textStream } = streamText({ model: ctx.model(model), prompt: 'hello', maxRetries: 0 })
    let text = ''
    for await (const part of textStream) text += part
    return text
  },
})

const add = tool({
  description: 'adds two numbers',
  inputSchema: z.object({ a: z.number(), b: z.number() }),
  execute: ({ a, b }) => a + b,
})

export const adder = llmAgent({ name: 'adder', model: 'm', instructions: 'Add.', tools: { add } })

/** Longer than anybody waits, however busy the machine is. */
const DEAF_MS = 600_000

export const deaf = llmAgent({
  name: 'deaf',
  model: 'm',
  toolTimeoutMs: 200,
  tools: {
    wait: tool({
      inputSchema: z.object({}),
      execute: async () => {
        await new Promise((resolve) => setTimeout(resolve, DEAF_MS).unref())
        return 'too late'
      },
    }),
  },
})

export const city = llmAgent({
  name: 'city',
  model: 'm',
  output: z.object({ name: z.string(), people: z.number() }),
  prompt: (country: string) => `The capital of ${country}?`,
})

/** Outputs of the AI SDK; with the model `echo`, the prompt is the reply. */
export const outputs = {
  object: llmAgent({
    name: 'output-object',
    model: 'm',
    output: Output.object({ schema: z.object({ n: z.number() }) }),
  }),
  array: llmAgent({ name: 'output-array', model: 'm', output: Output.array({ element: z.number() }) }),
  choice: llmAgent({ name: 'output-choice', model: 'm', output: Output.choice({ options: ['yes', 'no'] }) }),
  json: llmAgent({ name: 'output-json', model: 'm', output: Output.json() }),
  plain: llmAgent({ name: 'output-plain', model: 'm', output: { type: 'array', items: { type: 'number' } } }),
  sdk: llmAgent({
    name: 'output-sdk',
    model: 'm',
    output: jsonSchema<number[]>({ type: 'array', items: { type: 'number' } }),
  }),
  nonsense: llmAgent({ name: 'output-nonsense', model: 'm', output: { type: 'objekt' } }),
  text: llmAgent({ name: 'output-text', model: 'm', output: Output.text() }),
}

/** Stops at its tool, without an output. */
export const outputless = llmAgent({
  name: 'outputless',
  model: 'm',
  output: Output.choice({ options: ['yes', 'no'] }),
  tools: { add },
  stopWhen: hasToolCall('add'),
})

const place = z.object({ name: z.string(), country: z.string().optional() })

/** Everything that OpenAI's strict schemas refuse, and that can be said another way. */
export const trip = z.object({
  title: z.string(),
  note: z.string().optional(),
  days: z.number().default(3),
  guide: z.string().nullable(),
  stops: z.array(place),
  start: place.optional(),
  by: z.discriminatedUnion('kind', [
    z.object({ kind: z.literal('train'), seat: z.string().optional() }),
    z.object({ kind: z.literal('boat') }),
  ]),
})

export const planner = llmAgent({ name: 'planner', model: 'm', output: trip })

/** The same by `ctx.generate`, with any schema. */
export const former = defineAgent({
  name: 'former',
  run: async ({ open }: { open: boolean | 'loose' }, ctx) => {
    const counts = z.record(z.string(), z.number())
    const schema = open === 'loose' ? z.looseObject({ counts }) : open ? z.object({ counts }) : trip
    return (await ctx.generate({ model: 'm', prompt: 'a trip', schema: schema as z.ZodType })).output
  },
})

/** A conversation of its own making, one question after the other. */
export const turns = defineAgent({
  name: 'turns',
  run: async ({ name, turns }: { name: string; turns: number }, ctx) => {
    const said: string[] = []
    for (let turn = 0; turn < turns; turn++)
      said.push((await ctx.generate({ model: 'm', prompt: `${name}, turn ${turn}` })).text)
    return said
  },
})

/** Takes its worker down when the scripted server at `url` has got so many requests that contain `text`. */
export const killer = defineAgent({
  name: 'killer',
  run: async ({ url, text, count }: { url: string; text: string; count: number }) => {
    const requests = `${url}/_scripted/requests?${new URLSearchParams({ body: text })}`
    for (;;) {
      const found = (await (await fetch(requests)).json()) as unknown[]
      if (found.length >= count) break
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
    process.kill(process.pid, 'SIGKILL')
  },
})

/** Puts a secret wherever it can. */
export const leaky = defineAgent({
  name: 'leaky',
  run: async ({ where, secret }: { where: string; secret: string }, ctx) => {
    const { text } = await ctx.generate({ model: 'm', prompt: where === 'message' ? `my key is ${secret}` : where })
    switch (where) {
      case 'tool':
        void ctx.step({ action: 'tool', observation: { headers: { authorization: `Bearer ${secret}` } } })
        return 'done'
      case 'error':
        throw new Error(`401: the key ${secret} is not valid`)
      case 'print':
        console.log('using', secret)
        console.error({ secret })
        return 'done'
      case 'environment':
        return process.env.MW_TEST_KEY ?? 'no variable'
      default:
        return text.length
    }
  },
})

export const person = llmAgent({
  name: 'person',
  model: 'm',
  output: z.object({ name: z.string(), age: z.number().int() }),
  prompt: (text: string) => `Who is this about? ${text}`,
  temperature: 0.8,
  maxOutputTokens: 60,
})

const tokenize = async (url: string, content: string): Promise<number[]> => {
  const response = await fetch(`${url}/tokenize`, {
    method: 'POST',
    body: JSON.stringify({ content, add_special: false, parse_special: true }),
  })
  return ((await response.json()) as { tokens: number[] }).tokens
}

/** Ends a turn of SmolLM2. */
const END_OF_TURN = 2

/** A conversation that carries token ids: only what is new is tokenized. */
export const talker = defineAgent({
  name: 'talker',
  run: async ({ url, slot, says }: { url: string; slot: number; says: readonly string[] }, ctx) => {
    const turns: { prompt: number; completion: number; cached: number | undefined }[] = []
    let ids: number[] = []
    for (const text of says) {
      ids.push(...(await tokenize(url, `<|im_start|>user\n${text}<|im_end|>\n<|im_start|>assistant\n`)))
      const { tokens, cachedTokens } = await ctx.complete({
        ...{ model: 'm', prompt: ids, maxTokens: 16, temperature: 0.8, seed: slot, extraBody: { id_slot: slot } },
      })
      turns.push({ prompt: ids.length, completion: tokens!.ids.length, cached: cachedTokens })
      ids = [...ids, ...tokens!.ids]
      if (ids.at(-1) !== END_OF_TURN) ids.push(END_OF_TURN)
      ids.push(...(await tokenize(url, '\n')))
    }
    return turns
  },
})

/** Ends before its call has begun. */
export const hasty = defineAgent({
  name: 'hasty',
  run: async (prompt: string, ctx) => {
    ctx.generate({ model: 'm', prompt }).catch(() => {})
    return 'gone'
  },
})

/** Has a model say whether the answer is good. */
export const judged = defineGrader({
  name: 'judged',
  grade: async ({ answer }, ctx) => {
    const { output } = await ctx.generate({
      model: 'judge',
      prompt: `Good? ${JSON.stringify(answer)}`,
      schema: z.object({ good: z.boolean() }),
    })
    return { reward: output.good ? 1 : 0, success: output.good, feedback: `judged ${output.good}` }
  },
})

/** Its tool returns what cannot be written as JSON. */
export const counting = llmAgent({
  name: 'counting',
  model: 'm',
  tools: { count: tool({ inputSchema: z.object({}), execute: () => 12n }) },
})

export const promptless = llmAgent({ name: 'promptless', model: 'm', prompt: (() => 4) as unknown as () => string })

// Compiled by `npm run check`, never run: models of a run, and agents that are models.
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { generateText, hasToolCall, type LanguageModel, Output, tool } from 'ai'
import { MockLanguageModelV4 } from 'ai/test'
import { defineAgent, type RunConfig, Runners } from 'manyworlds'
import { llmAgent } from 'manyworlds/agents'
import { numeric } from 'manyworlds/grade'
import * as z from 'zod'
import { same } from './equal.ts'

const settings = { baseURL: 'http://localhost:8000/v1', model: 'qwen3' }

// Models of a run: settings, or objects of the AI SDK.
const provider = createOpenAICompatible({ name: 'p', baseURL: 'http://localhost:8000/v1' })
export const config: RunConfig = {
  models: { small: settings, large: provider('m'), chat: provider.chatModel('m'), mock: new MockLanguageModelV4() },
}
// @ts-expect-error a model needs the address of its server
export const noAddress: RunConfig = { models: { small: { model: 'qwen3' } } }
// @ts-expect-error the key itself is never in the settings
export const withKey: RunConfig = { models: { small: { ...settings, apiKey: 'sk-…' } } }
// @ts-expect-error a name alone could mean any server
export const byName: RunConfig = { models: { small: 'openai/gpt-5' } }
// @ts-expect-error it is called from the driver, or directly
export const viaNode: RunConfig = { models: { small: { ...settings, via: 'node' } } }
// @ts-expect-error an embedding model answers nothing
export const embedding: RunConfig = { models: { small: provider.embeddingModel('m') } }

export const agent = defineAgent({
  name: 'asks',
  run: async (question: string, ctx) => {
    const model: LanguageModel = ctx.model('small')
    await generateText({ model, prompt: question })
    await generateText({ model: ctx.model('small'), prompt: question, output: Output.object({ schema: z.object({}) }) })
    const plain = await ctx.generate({ model: 'small', prompt: question })
    same<typeof plain.text, string>(true)
    same<typeof plain.output, unknown>(true)
    const { output } = await ctx.generate({ model: 'small', prompt: question, schema: z.object({ n: z.number() }) })
    same<typeof output, { n: number }>(true)
    const changed = await ctx.generate({
      model: 'small',
      prompt: question,
      schema: z.object({ n: z.string().transform(Number) }),
    })
    same<typeof changed.output, { n: number }>(true)
    const json = await ctx.generate({ model: 'small', prompt: question, schema: { type: 'object' } })
    same<typeof json.output, unknown>(true)
    const said = await ctx.generate<{ n: number }>({ model: 'small', prompt: question, schema: { type: 'object' } })
    same<typeof said.output, { n: number }>(true)
    const { tokens } = await ctx.complete({ model: 'small', prompt: [1, 2, 3] })
    same<NonNullable<typeof tokens>['ids'], Int32Array>(true)
    // @ts-expect-error a prompt is needed
    await ctx.generate({ model: 'small' })
    // @ts-expect-error a model is named
    await ctx.generate({ model: provider('m'), prompt: question })
    // @ts-expect-error there is no such option
    await ctx.generate({ model: 'small', prompt: question, max_tokens: 3 })
    // @ts-expect-error tokens are numbers
    await ctx.complete({ model: 'small', prompt: ['a'] })
    // @ts-expect-error a model is named
    ctx.model(3)
    return 1
  },
})

const add = tool({
  description: 'adds',
  inputSchema: z.object({ a: z.number(), b: z.number() }),
  execute: async ({ a, b }) => a + b,
})
const search = tool({ inputSchema: z.object({ q: z.string() }) })

// Without an output, the answer is a text.
const plain = llmAgent({
  name: 'plain',
  model: 'small',
  tools: { add, search },
  stopWhen: hasToolCall('search'),
  grade: numeric(),
})
const fromText = await Runners.runTask(plain.task('What is 6 x 7?'))
same<typeof fromText.answer, string | undefined>(true)
// @ts-expect-error the input is a text
plain.task({ question: 'What?' })

// With a schema of zod, its output.
const structured = llmAgent({
  name: 'structured',
  model: 'small',
  output: z.object({ n: z.number(), tags: z.array(z.string()) }),
})
const fromZod = await Runners.runTask(structured.task('What?'))
same<typeof fromZod.answer, { n: number; tags: string[] } | undefined>(true)

// With an Output of the AI SDK, its output.
const sdk = llmAgent({ name: 'sdk', model: 'small', output: Output.object({ schema: z.object({ n: z.number() }) }) })
const fromSdk = await Runners.runTask(sdk.task('What?'))
same<typeof fromSdk.answer, { n: number } | undefined>(true)
const choice = llmAgent({ name: 'choice', model: 'small', output: Output.choice({ options: ['yes', 'no'] }) })
const fromChoice = await Runners.runTask(choice.task('Is it?'))
same<typeof fromChoice.answer, 'yes' | 'no' | undefined>(true)
const list = llmAgent({ name: 'list', model: 'small', output: Output.array({ element: z.object({ n: z.number() }) }) })
const fromList = await Runners.runTask(list.task('Which?'))
same<typeof fromList.answer, { n: number }[] | undefined>(true)

// With a JSON schema, nobody knows.
const json = llmAgent({
  name: 'json',
  model: 'small',
  output: { type: 'object', properties: { n: { type: 'number' } } },
})
const fromJson = await Runners.runTask(json.task('What?'))
same<typeof fromJson.answer, unknown>(true)

// The input is what `prompt` takes.
interface Question {
  readonly city: string
}
const asking = llmAgent({
  name: 'asking',
  model: 'small',
  prompt: ({ city }: Question) => `What is in ${city}?`,
  output: z.object({ n: z.number() }),
  grade: ({ answer }) => answer.n,
})
asking.task({ city: 'Rome' })
const fromAsking = await Runners.runTask(asking.task({ city: 'Rome' }))
same<typeof fromAsking.answer, { n: number } | undefined>(true)
// @ts-expect-error it takes a city
asking.task('Rome')
llmAgent({ name: 'messages', model: 'small', prompt: (city: string) => [{ role: 'user', content: city }] }).task('Rome')
llmAgent({ name: 'made', model: 'small', tools: (_: Question, ctx) => (ctx.params.maxTurns > 3 ? { add } : {}) }).task({
  city: 'R',
})

// @ts-expect-error a name is needed
llmAgent({ model: 'small' })
// @ts-expect-error a model is named; an object stands in `models` of the run
llmAgent({ name: 'object', model: provider('m') })
// @ts-expect-error there is no such option
llmAgent({ name: 'unknown', model: 'small', maxSteps: 3 })
// @ts-expect-error tools have names
llmAgent({ name: 'unnamed', model: 'small', tools: [add] })
// @ts-expect-error a tool says what it takes
llmAgent({ name: 'shapeless', model: 'small', tools: { add: { execute: () => 1 } } })
// @ts-expect-error it is a number
llmAgent({ name: 'turns', model: 'small', maxTurns: '3' })
// @ts-expect-error a prompt is a text or messages
llmAgent({ name: 'number', model: 'small', prompt: (n: number) => n })

// Whoever knows better than a JSON schema says so.
const known = llmAgent<string, { n: number }>({ name: 'known', model: 'small', output: { type: 'object' } })
const fromKnown = await Runners.runTask(known.task('What?'))
same<typeof fromKnown.answer, { n: number } | undefined>(true)

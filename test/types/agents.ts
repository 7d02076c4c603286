// Compiled by `npm run check`, never run: what the compiler infers of an agent, and what it refuses.
import { type Agent, type AnswerOf, type Context, defineAgent, type InputOf, type SetupContext } from 'manyworlds'
import { same } from './equal.ts'

// ---- input and answer

const shout = defineAgent({ name: 'shout', run: async (input: string, ctx) => `${input}${ctx.attempt}` })
same<typeof shout, Agent<string, string, undefined, 'shout'>>(true)
same<InputOf<typeof shout>, string>(true)
same<AnswerOf<typeof shout>, string>(true)

const add = defineAgent({ name: 'add', run: ({ a, b }: { a: number; b: number }) => a + b })
same<InputOf<typeof add>, { a: number; b: number }>(true)
same<AnswerOf<typeof add>, number>(true)

const noInput = defineAgent({ name: 'no-input', run: () => 1 })
same<InputOf<typeof noInput>, unknown>(true)

const nothing = defineAgent({ name: 'nothing', run: async (_input: string) => {} })
same<AnswerOf<typeof nothing>, void>(true)
const nul = defineAgent({ name: 'nul', run: async (_input: string) => null })
same<AnswerOf<typeof nul>, null>(true)
const maybe = defineAgent({
  name: 'maybe',
  run: async (input: string): Promise<number | undefined> => (input ? 1 : undefined),
})
same<AnswerOf<typeof maybe>, number | undefined>(true)
const either = defineAgent({
  name: 'either',
  run: (input: string): string | Promise<number> => (input ? input : Promise.resolve(1)),
})
same<AnswerOf<typeof either>, string | number>(true)
const yesNo = defineAgent({ name: 'yes-no', run: async (input: string) => input === 'yes' })
same<AnswerOf<typeof yesNo>, boolean>(true)
const anything = defineAgent({ name: 'anything', run: async (input: string) => JSON.parse(input) })
// biome-ignore lint/suspicious/noExplicitAny: it is what JSON.parse answers
same<AnswerOf<typeof anything>, any>(true)
const choice = defineAgent({ name: 'choice', run: async (input: 'left' | 'right') => input })
same<InputOf<typeof choice>, 'left' | 'right'>(true)
same<AnswerOf<typeof choice>, 'left' | 'right'>(true)

// ---- params and state, in the context

const greeter = defineAgent({
  name: 'greeter',
  params: { greeting: 'hello', times: 2 },
  setup: async (params, ctx) => {
    same<typeof params, { greeting: string; times: number }>(true)
    same<typeof ctx, SetupContext>(true)
    return new Map([[params.greeting, params.times]])
  },
  run: async (input: string, ctx) => {
    same<typeof ctx, Context<{ greeting: string; times: number }, Map<string, number>>>(true)
    same<typeof ctx.signal, AbortSignal>(true)
    same<typeof ctx.previous, unknown>(true)
    same<typeof ctx.results, ReadonlyMap<string, unknown>>(true)
    const response = await ctx.runTask(shout.task(input))
    if (response.success) same<typeof response.answer, string>(true)
    const both = await ctx.runTask([
      { input: 'x', agent: shout },
      { input: { a: 1, b: 2 }, agent: add },
    ])
    for (const one of both.values()) if (one.success) same<typeof one.answer, string | number>(true)
    // @ts-expect-error: sub-tasks are checked like tasks
    await ctx.runTask({ input: 1, agent: shout })
    return ctx.state.get(ctx.params.greeting)
  },
})
same<AnswerOf<typeof greeter>, number | undefined>(true)
greeter.withParams({ greeting: 'bye', times: 1 })
// @ts-expect-error: params have a type
greeter.withParams({ greeting: 'bye' })

const plain = defineAgent({
  name: 'plain',
  run: (input: number, ctx) => {
    same<typeof ctx.params, undefined>(true)
    same<typeof ctx.state, undefined>(true)
    return input
  },
})

// ---- tasks of an agent

const task = shout.task('x', { id: 'a', timeoutMs: 5, dependsOn: ['b'], metadata: { any: 'thing' } })
same<typeof task.input, string>(true)
// @ts-expect-error: the wrong input
shout.task(1)
// @ts-expect-error: no input
shout.task()
// @ts-expect-error: not one of the two
choice.task('middle')
// @ts-expect-error: unknown option
shout.task('x', { timeout: 5 })
// @ts-expect-error: only 'auto' or 'never'
shout.task('x', { rerun: 'always' })

// ---- definitions that are wrong

// @ts-expect-error: no name
defineAgent({ run: async (input: string) => input })
// @ts-expect-error: no run
defineAgent({ name: 'x' })
// @ts-expect-error: unknown key
defineAgent({ name: 'x', run: async (input: string) => input, timeout: 5 })

// ---- agents as arguments

const all: readonly Agent[] = [shout, add, greeter, plain, anything]
same<(typeof all)[number]['name'], string>(true)
declare function wantsStrings(agent: Agent<string>): void
wantsStrings(shout)
wantsStrings(noInput)
// @ts-expect-error: it takes an object
wantsStrings(add)
declare function wantsNumberBack(agent: Agent<string, number>): void
wantsNumberBack(defineAgent({ name: 'length', run: (input: string) => input.length }))
// @ts-expect-error: it answers a string
wantsNumberBack(shout)

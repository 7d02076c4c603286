// Compiled by `npm run check`, never run: tasks in all the shapes in which they can be given.
import {
  type Agent,
  defineAgent,
  EngineName,
  execTasks,
  type ResponseOf,
  Runners,
  SerialableAgent,
  Task,
  type TaskError,
  type TaskLike,
  type TaskResponse,
} from 'manyworlds'
import { same } from './equal.ts'

const explain = defineAgent({ name: 'explain', run: async (input: string, ctx) => `${input} ${ctx.task.id}` })
const double = defineAgent({ name: 'double', run: async (input: number) => input * 2 })
const join = defineAgent({ name: 'join', run: async (input: string[]) => new Set(input) })
const turn = defineAgent({ name: 'turn', run: async (input: 'left' | 'right') => input === 'left' })

// ---- as in the design

const tasks = [
  { id: 'task1', input: 'what is machine learning?', agent: explain },
  { id: 'task2', input: 'explain neural networks', agent: explain },
]
const results = await Runners.runTask(tasks)
const again = await Runners.runTask(tasks, { engineName: EngineName.RAY, workerNum: 8 })
same<typeof results, Map<string, TaskResponse<string>>>(true)
same<typeof again, Map<string, TaskResponse<string>>>(true)
const first = results.get('task1')
if (first?.success) console.log(first.answer.toUpperCase())
else console.error(first?.error)
for await (const response of Runners.streamTask(tasks, { engineName: 'spark', inLocal: true }))
  same<typeof response, TaskResponse<string>>(true)

// ---- one

same<Awaited<ReturnType<typeof one>>, TaskResponse<string>>(true)
const one = () => Runners.runTask({ input: 'x', agent: explain })
const same1 = await Runners.runTask(explain.task('x'))
const same2 = await Runners.runTask(new Task({ input: 'x', agent: explain, id: 'x' }))
same<typeof same1, TaskResponse<string>>(true)
same<typeof same2, TaskResponse<string>>(true)
// @ts-expect-error: the wrong input
await Runners.runTask({ input: 1, agent: explain })
// @ts-expect-error: the wrong input
new Task({ input: 1, agent: explain })
// @ts-expect-error: an agent is not a task
await Runners.runTask(explain)

declare const left: boolean
const ofEither = await Runners.runTask(left ? explain.task('x') : double.task(1))
same<typeof ofEither, TaskResponse<string | number>>(true)
const wrongEither = left ? { input: 1, agent: explain } : { input: 1, agent: double }
// @ts-expect-error: the wrong input for one of them
await Runners.runTask(wrongEither)
// @ts-expect-error: unknown key
await Runners.runTask({ input: 'x', agent: explain, timeoutMS: 5 })

// ---- without an input

const now = defineAgent({ name: 'now', run: async () => Date.now() })
const greet = defineAgent({ name: 'greet', run: async (name: string | undefined) => `hello ${name}` })
const greetOptional = defineAgent({ name: 'greetOptional', run: async (name?: string) => `hello ${name}` })
const dated = await Runners.runTask(now.task())
same<typeof dated, TaskResponse<number>>(true)
const greeted = await Runners.runTask([greet.task(), greet.task('x'), greetOptional.task(), greetOptional.task('x')])
same<typeof greeted, Map<string, TaskResponse<string>>>(true)
greet.task(undefined, { id: 'x' })
// @ts-expect-error: it needs an input
explain.task()
// @ts-expect-error: not null
greet.task(null)
new SerialableAgent({ agents: [now, double] }).task()
// @ts-expect-error: its first agent needs an input
new SerialableAgent({ agents: [double, double] }).task()
const anyOf = (agent: TaskLike['agent']) => agent.task(1)
anyOf(now)
anyOf(explain)

// ---- literals: each input is checked against the agent beside it

const mixed = await Runners.runTask([
  { input: 'x', agent: explain },
  { input: 1, agent: double, timeoutMs: 5 },
  { input: ['a'], agent: join },
  { input: 'left', agent: turn },
  explain.task('y'),
])
same<typeof mixed, Map<string, TaskResponse<string | number | boolean | Set<string>>>>(true)
await Runners.runTask([
  { input: 'x', agent: explain },
  // @ts-expect-error: another agent of the array would take it, this one does not
  { input: 'y', agent: double },
])
await Runners.runTask([
  // @ts-expect-error: not one of the two
  { input: 'middle', agent: turn },
])
await Runners.runTask([
  // @ts-expect-error: unknown key
  { input: 'x', agent: explain, timeoutMS: 5 },
])
await Runners.runTask([
  // @ts-expect-error: no agent
  { input: 'x' },
])
await Runners.runTask([
  // @ts-expect-error: an agent is not a task
  explain,
])
// @ts-expect-error: nothing
await Runners.runTask(null)
const none = await Runners.runTask([])
same<typeof none extends Map<string, TaskResponse<infer _>> ? true : false, true>(true)

// ---- constants and variables

const constant = [
  { input: 'x', agent: explain },
  { input: 1, agent: double },
] as const
same<Awaited<ReturnType<typeof runConstant>>, Map<string, TaskResponse<string | number>>>(true)
const runConstant = () => Runners.runTask(constant)
const wrongConstant = [
  { input: 'x', agent: explain },
  { input: 'y', agent: double },
] as const
// @ts-expect-error: the second
await Runners.runTask(wrongConstant)

const variable = [
  { input: 'x', agent: explain },
  { input: 1, agent: double },
]
same<Awaited<ReturnType<typeof runVariable>>, Map<string, TaskResponse<string | number>>>(true)
const runVariable = () => Runners.runTask(variable)
const wrongVariable = [
  { input: 1, agent: explain },
  { input: 1, agent: double },
]
// @ts-expect-error: the first
await Runners.runTask(wrongVariable)
const mapped = await Runners.runTask([1, 2].map((input) => ({ id: `n${input}`, input, agent: double })))
same<typeof mapped, Map<string, TaskResponse<number>>>(true)
// @ts-expect-error: numbers
await Runners.runTask([1, 2].map((input) => ({ input, agent: explain })))
const declared: TaskLike<typeof explain>[] = []
same<Awaited<ReturnType<typeof runDeclared>>, Map<string, TaskResponse<string>>>(true)
const runDeclared = () => Runners.runTask(declared)
const objects: Task<typeof double>[] = []
same<Awaited<ReturnType<typeof runObjects>>, Map<string, TaskResponse<number>>>(true)
const runObjects = () => Runners.runTask(objects)
const untyped: TaskLike[] = []
// biome-ignore lint/suspicious/noExplicitAny: an agent of whatever types
same<Awaited<ReturnType<typeof runUntyped>>, Map<string, TaskResponse<any>>>(true)
const runUntyped = () => Runners.runTask(untyped)
declare const oneOrMany: TaskLike<typeof explain> | TaskLike<typeof explain>[]
const either = await Runners.runTask(oneOrMany)
same<typeof either, TaskResponse<string> | Map<string, TaskResponse<string>>>(true)

/** A helper of a user's, for any agent. */
async function askAll<Input, Answer>(agent: Agent<Input, Answer>, inputs: Input[]): Promise<Answer[]> {
  const responses = await Runners.runTask(inputs.map((input) => agent.task(input)))
  return [...responses.values()].flatMap((response) => (response.success ? [response.answer] : []))
}
same<Awaited<ReturnType<typeof askDouble>>, number[]>(true)
const askDouble = () => askAll(double, [1, 2])
// @ts-expect-error: the wrong inputs
await askAll(double, ['x'])

// ---- iterables

function* generated() {
  yield { input: 'x', agent: explain }
  yield { input: 1, agent: double }
}
async function* later() {
  yield* generated()
}
same<Awaited<ReturnType<typeof runGenerated>>, Map<string, TaskResponse<string | number>>>(true)
const runGenerated = () => Runners.runTask(generated())
same<Awaited<ReturnType<typeof runLater>>, Map<string, TaskResponse<string | number>>>(true)
const runLater = () => Runners.runTask(later())
for await (const response of Runners.streamTask(later(), { workerNum: 2 }))
  same<typeof response, TaskResponse<string | number>>(true)
const fromSet = await execTasks(new Set([explain.task('x')]))
same<typeof fromSet, Map<string, TaskResponse<string>>>(true)
function* wrongly() {
  yield { input: 'x', agent: explain }
  yield { input: 'y', agent: double }
}
// @ts-expect-error: the second
await Runners.runTask(wrongly())
// @ts-expect-error: the second
Runners.streamTask(wrongly())

// ---- the other entries

same<ReturnType<typeof blocking>, Map<string, TaskResponse<string | number>>>(true)
const blocking = () => Runners.syncRunTask([{ input: 'x', agent: explain }, double.task(1)])
// @ts-expect-error: not from a generator
Runners.syncRunTask(generated())
same<Awaited<ReturnType<typeof utility>>, Map<string, TaskResponse<string>>>(true)
const utility = () => execTasks(tasks, { workerNum: 1 })
Runners.streamTask([
  // @ts-expect-error: the wrong input
  { input: 1, agent: explain },
])
execTasks([
  // @ts-expect-error: the wrong input
  { input: 1, agent: explain },
])
Runners.syncRunTask([
  // @ts-expect-error: the wrong input
  { input: 1, agent: explain },
])

// ---- responses

declare const response: TaskResponse<number>
same<typeof response.answer, number | undefined>(true)
if (response.success) {
  same<typeof response.answer, number>(true)
  same<typeof response.status, 'success'>(true)
} else {
  same<typeof response.error, TaskError>(true)
  same<typeof response.status, 'failed' | 'timeout' | 'crashed' | 'cancelled'>(true)
}
if (response.status === 'success') same<typeof response.answer, number>(true)
if (response.status === 'timeout') same<typeof response.error, TaskError>(true)
switch (response.status) {
  case 'success':
  case 'failed':
  case 'timeout':
  case 'crashed':
  case 'cancelled':
    break
  default:
    same<typeof response, never>(true)
}
same<ResponseOf<(typeof tasks)[number]>, TaskResponse<string>>(true)

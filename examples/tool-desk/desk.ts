import { defineEnvironment, randomPolicy, stepAgent } from 'manyworlds/agents'

/**
 * The tool desk: a small world of text tasks in which an agent can learn within seconds. "first sum apples pears then times
 * figs" means: look up both prices, add them, look up the third, multiply, submit. Other words and other tools are on the
 * desk too, and lead nowhere.
 */
export interface DeskTask {
  readonly instruction: string
  /** What the tool `lookup` knows, and the agent does not. */
  readonly prices: Readonly<Record<string, number>>
}

/** What the policy sees: words, what it has called so far, and the numbers it has on its desk, the last one on top. */
export interface DeskObservation {
  readonly calls: readonly string[]
  readonly numbers: readonly number[]
  readonly text: string
}

const WORDS = 'apples pears figs plums dates limes nuts grapes kiwis melons'.split(' ')
const OPERATIONS = { sum: 'add', minus: 'sub', times: 'mul' } as const
type Verb = keyof typeof OPERATIONS
const VERBS = Object.keys(OPERATIONS) as Verb[]
const DISTRACTORS = ['staple', 'phone']

const compute = (tool: string, a: number, b: number) => (tool === 'add' ? a + b : tool === 'sub' ? a - b : a * b)

/** The right answer: the world knows it, the agent has to find it. */
function solve({ instruction, prices }: DeskTask): number {
  const words = instruction.split(' ').filter((word) => word !== 'first' && word !== 'then')
  const [verb, a, b, ...rest] = words as [Verb, string, string, ...string[]]
  const first = compute(OPERATIONS[verb], prices[a]!, prices[b]!)
  return rest.length === 0 ? first : compute(OPERATIONS[rest[0] as Verb], first, prices[rest[1]!]!)
}

/** What can be called: operations take the two numbers on top. What is always there comes first. */
function callsFor(lookups: readonly string[], numbers: number): string[] {
  const calls = [...lookups, ...DISTRACTORS]
  if (numbers > 0) calls.push('submit')
  if (numbers > 1) calls.push('add', 'sub', 'mul')
  return calls
}

export const desk = defineEnvironment({
  name: 'tool-desk',
  reset: ({ input }: { input: DeskTask }) => {
    const lookups = Object.keys(input.prices).map((word) => `lookup ${word}`)
    const observation: DeskObservation = { calls: [], numbers: [], text: input.instruction }
    return {
      state: { task: input, answer: solve(input), lookups, observation },
      observation,
      candidates: callsFor(lookups, 0),
    }
  },
  step: (state, call) => {
    const { task, answer, lookups } = state
    const numbers = [...state.observation.numbers]
    const done = call === 'submit'
    const success = done && numbers.at(-1) === answer
    if (call.startsWith('lookup ')) numbers.push(task.prices[call.slice('lookup '.length)]!)
    else if (call === 'add' || call === 'sub' || call === 'mul')
      numbers.push(compute(call, ...(numbers.splice(-2) as [number, number])))
    const observation: DeskObservation = { calls: [...state.observation.calls, call], numbers, text: task.instruction }
    state.observation = observation
    return { observation, reward: success ? 1 : 0, done, success, candidates: callsFor(lookups, numbers.length) }
  },
})

/** One operation, or two. Those that are held out never occur in training; each of their operations does, at its place. */
const COMPOSITIONS: readonly (readonly Verb[])[] = [
  ...VERBS.map((one) => [one]),
  ...VERBS.flatMap((one) => VERBS.map((two) => [one, two])),
]
const HELD_OUT = new Set(['sum,minus', 'minus,times', 'times,sum'])

/** Tasks of one part of the compositions, none of them twice; the same seed makes the same tasks. */
export function deskTasks({
  part,
  count,
  seed,
}: {
  part: 'train' | 'held-out'
  count: number
  seed: number
}): DeskTask[] {
  const compositions = COMPOSITIONS.filter((verbs) => HELD_OUT.has(verbs.join(',')) === (part === 'held-out'))
  const random = seeded(seed)
  const pick = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)]!
  const draw = (): DeskTask => {
    const [one, two] = pick(compositions)
    const words = new Set<string>()
    while (words.size < (two === undefined ? 3 : 4)) words.add(pick(WORDS))
    const [a, b, c] = words
    const instruction = two === undefined ? `${one} ${a} ${b}` : `first ${one} ${a} ${b} then ${two} ${c}`
    // In the order of the alphabet: the place of a word on the list gives nothing away.
    const prices = Object.fromEntries([...words].sort().map((word) => [word, 2 + Math.floor(random() * 28)]))
    const task = { instruction, prices }
    // A price that happens to be the answer would teach the wrong thing.
    return Object.values(prices).includes(solve(task)) ? draw() : task
  }
  const tasks = new Map<string, DeskTask>()
  while (tasks.size < count) {
    const task = draw()
    tasks.set(JSON.stringify(task), task)
  }
  return [...tasks.values()]
}

/** mulberry32 */
function seeded(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296
  }
}

/** Chooses any tool. To be trained. */
export const clerk = stepAgent({ name: 'clerk', environment: desk, policy: randomPolicy() })

import { setTimeout as sleep } from 'node:timers/promises'
import { types } from 'node:util'
import { type Context, defineAgent, defineGrader } from 'manyworlds'

/** Answers twice what it is given; the expected answer is in `groundTruth`. */
export const doubler = defineAgent({ name: 'doubler', run: async (input: number) => input * 2 })

/** Graded as its definition says. */
export const selfGraded = defineAgent({
  name: 'self-graded',
  run: async (input: string) => input.toUpperCase(),
  grade: ({ answer, groundTruth, task }) => ({
    reward: answer === groundTruth ? 1 : 0.25,
    success: answer === groundTruth,
    feedback: `${task.input} became ${answer}`,
  }),
})

export const equals = defineGrader({
  name: 'equals',
  grade: ({ answer, groundTruth }) => answer === groundTruth,
})

/** Says in which process it grades, and what it was given. */
export const looks = defineGrader({
  name: 'looks',
  trajectory: true,
  grade: (sample) => ({ reward: 0.5, feedback: JSON.stringify({ pid: process.pid, sample }) }),
})

export const within = defineGrader({
  name: 'within',
  params: { tolerance: 0 },
  grade: ({ answer, groundTruth }, ctx: Pick<Context<{ tolerance: number }>, 'params'>) => ({
    parts: {
      close: { value: Math.abs(Number(answer) - Number(groundTruth)) <= ctx.params.tolerance ? 1 : 0, weight: 3 },
      short: { value: 1, weight: 1 },
    },
    reward: null as never,
  }),
})

type Mishap = 'throws' | 'hangs' | 'exits' | 'blocks' | 'nan' | 'nothing' | 'misspells' | 'kills'

/** What its sample's answer says, happens. */
export const mishap = defineGrader<unknown, Mishap>({
  name: 'mishap',
  grade: async ({ answer }) => {
    switch (answer) {
      case 'throws':
        throw new RangeError('cannot grade this')
      case 'hangs':
        await sleep(60_000)
        return 1
      case 'exits':
        return process.exit(3)
      case 'blocks':
        for (;;);
      case 'kills':
        process.kill(process.pid, 'SIGKILL')
        await sleep(60_000)
        return 1
      case 'nan':
        return Number.NaN
      case 'misspells':
        return { reward: 0.8, succes: true, feedbak: 'good' }
      default:
        return undefined as never
    }
  },
})

export const says = defineAgent({ name: 'says', run: async (answer: Mishap) => answer })

/** Looks everywhere for a text that only its grader may know. */
export const snoop = defineAgent({
  name: 'snoop',
  run: async (secret: { reversed: string }, ctx) => {
    const wanted = [...secret.reversed].reverse().join('')
    const seen = new Set<unknown>()
    const found: string[] = []
    const look = (value: unknown, path: string, depth: number) => {
      if (typeof value === 'string' && value.includes(wanted)) found.push(path)
      if ((typeof value !== 'object' && typeof value !== 'function') || value === null || seen.has(value) || depth > 12)
        return
      seen.add(value)
      if (types.isMap(value)) for (const [key, one] of value) look([key, one], `${path}.map`, depth + 1)
      if (types.isSet(value)) for (const one of value) look(one, `${path}.set`, depth + 1)
      for (let at: unknown = value; at !== null && at !== Object.prototype; at = Object.getPrototypeOf(at))
        for (const key of Reflect.ownKeys(at as object)) {
          let one: unknown
          try {
            one = (value as Record<PropertyKey, unknown>)[key]
          } catch {
            continue
          }
          look(one, `${path}.${String(key)}`, depth + 1)
        }
    }
    look(ctx, 'ctx', 0)
    look(globalThis, 'globalThis', 0)
    look(process.argv, 'argv', 0)
    look(process.env, 'env', 0)
    return found
  },
})

/** Leaves something running that listens to its signal. */
export const leaves = defineAgent({
  name: 'leaves',
  run: async (_input: unknown, ctx) => {
    void sleep(60_000, undefined, { signal: ctx.signal })
    ctx.signal.addEventListener('abort', () => ((globalThis as { left?: string }).left = String(ctx.signal.reason)))
    return 1
  },
})

export const seesLeftovers = defineGrader({
  name: 'sees-leftovers',
  grade: () => ({ reward: 1, feedback: String((globalThis as { left?: string }).left) }),
})

/** Succeeds for one rollout in two, by its own random numbers. */
export const gambler = defineAgent({
  name: 'gambler',
  run: async (_input: unknown, ctx) => ({ draws: [ctx.random(), ctx.random()], task: ctx.task }),
})

/** Spends so many tokens and cents, step by step. */
export const spender = defineAgent({
  name: 'spender',
  run: async ({ steps, ms = 5, first }: { steps: number; ms?: number; first?: Record<string, number> }, ctx) => {
    if (first) await ctx.step({ usage: first })
    for (let i = 0; i < steps; i++) {
      await ctx.step({ action: i, usage: { inputTokens: 90, outputTokens: 10, costUsd: 0.01 } })
      await sleep(ms)
    }
    return steps
  },
})

/** Pays for every attempt, and succeeds at the third. */
export const thirdTime = defineAgent({
  name: 'third-time',
  run: async (_input: unknown, ctx) => {
    await ctx.step({ usage: { inputTokens: 90, outputTokens: 10, costUsd: 0.01 } })
    if (ctx.attempt < 3) throw new Error('again')
    return ctx.attempt
  },
})

/** Says no: at once for the first 30, and never for the others. */
export const slowNo = defineGrader<number>({
  name: 'slow-no',
  grade: async ({ task }, ctx) => {
    if (task.input >= 30) await sleep(600_000, undefined, { signal: ctx.signal })
    return false
  },
})

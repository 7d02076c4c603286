import { spawn } from 'node:child_process'
import { appendFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Agent } from '../agent.ts'
import { defineGrader } from '../grade/grader.ts'
import { defineIn } from './define.ts'

/** The agents of the conformance kit: one for each way in which a task can behave or misbehave. */
const define = defineIn(import.meta.url)

export const echo = define('echo', (input: unknown) => input)
export const falsy = define('falsy', (which: number) => [0, '', false, null, undefined, Number.NaN][which])
export const pause = define('pause', async (ms: number) => {
  await sleep(ms)
  return ms
})
export const whoAmI = define('who-am-i', async (ms: number) => {
  await sleep(ms)
  return process.pid
})

/** Throws the requested kind of value. */
export const thrower = define(
  'thrower',
  async (what: 'error' | 'subclass' | 'string' | 'null' | 'undefined' | 'object' | 'function') => {
    class Broken extends TypeError {
      override name = 'Broken'
    }
    switch (what) {
      case 'error':
        throw new Error('kaputt', { cause: 'a reason' })
      case 'subclass':
        throw new Broken('very kaputt')
      case 'object':
        throw { status: 500, text: 'no' }
      case 'function':
        throw () => {}
      case 'string':
        throw 'just text'
      case 'null':
        throw null
      case 'undefined':
        throw undefined
    }
  },
)

/** Records a step and a line, then ends its own process in the requested way. */
export const killer = define('killer', async (how: 'sigkill' | 'exit' | 'abort' | 'none', ctx) => {
  if (how === 'none') return 'alive'
  ctx.step({ action: 'last step' })
  console.log('last line')
  // Wait, so that the records are sent first.
  await sleep(20)
  if (how === 'exit') process.exit(7)
  if (how === 'abort') process.abort()
  process.kill(process.pid, 'SIGKILL')
  await sleep(60_000)
  return 'never'
})

/** Kills its worker as soon as it runs. */
export const suddenKiller = define('sudden-killer', (kill: boolean) => {
  if (kill) process.kill(process.pid, 'SIGKILL')
  return 'alive'
})

/** Blocks its event loop forever. */
export const busyLoop = define('busy-loop', async (input: { afterMs: number; pidFile?: string }) => {
  if (input.pidFile !== undefined) {
    const child = spawn('sleep', ['1000'], { stdio: 'ignore' })
    appendFileSync(input.pidFile, `${process.pid}\n${child.pid}\n`)
  }
  await sleep(input.afterMs)
  for (;;) Math.random()
})

/** Ignores its signal: answers so many milliseconds after its task was given up. */
export const deaf = define('deaf', async (ms: number, ctx) => {
  // Not after a fixed time: if the worker is suspended meanwhile, the answer may be earlier than the timeout.
  const over = new Promise((resolve) => ctx.signal.addEventListener('abort', resolve, { once: true }))
  await Promise.race([over, sleep(60_000)])
  await sleep(ms)
  return 'late'
})

/** Obeys its signal. */
export const obedient = define('obedient', async (ms: number, ctx) => {
  await sleep(ms, undefined, { signal: ctx.signal })
  return 'done'
})

/** Fails until the requested attempt. */
export const stubborn = define('stubborn', (succeedsAt: number, ctx) => {
  if (ctx.attempt < succeedsAt) throw new Error(`attempt ${ctx.attempt}`)
  return { attempt: ctx.attempt, key: ctx.idempotencyKey }
})

/** Throws outside its own call stack. */
export const stray = define('stray', async () => {
  setTimeout(() => {
    throw new Error('thrown from a timer')
  }, 10)
  await sleep(10_000)
  return 'never'
})

/** Writes a line per start, so that a test can count the starts. */
export const countStarts = define('count-starts', async (input: { file: string; kill: boolean }) => {
  appendFileSync(input.file, 'started\n')
  if (input.kill) process.kill(process.pid, 'SIGKILL')
  await sleep(50)
  return 'done'
})

/** A tree of sub-tasks with `width` children per level and `depth` levels. */
export const tree: Agent<{ depth: number; width: number }, number, undefined> = define(
  'tree',
  async ({ depth, width }: { depth: number; width: number }, ctx): Promise<number> => {
    if (depth === 0) return 1
    const responses = await ctx.runTask(Array.from({ length: width }, () => tree.task({ depth: depth - 1, width })))
    let sum = 1
    for (const response of responses.values()) if (response.success) sum += response.answer
    return sum
  },
)

/** A parent whose only child kills its worker. */
export const parentOfKiller = define('parent-of-killer', async (_: null, ctx) => {
  const response = await ctx.runTask(killer.task('sigkill'))
  return response.status
})

export const large = define('large', (input: { bytes: Uint8Array; answerBytes: number }) => {
  const answer = new Uint8Array(input.answerBytes)
  for (let i = 0; i < answer.length; i += 4096) answer[i] = (i / 4096) % 251
  return { received: input.bytes.byteLength, sum: sumOf(input.bytes), answer }
})

export const sumOf = (bytes: Uint8Array): number => {
  let sum = 0
  for (let i = 0; i < bytes.length; i += 4096) sum += bytes[i]!
  return sum
}

export const printer = define('printer', async (word: string, ctx) => {
  for (let i = 0; i < 3; i++) {
    console.log(`${word} ${i}`)
    ctx.step({ action: word, reward: i })
    await sleep(5)
  }
  return word
})

/** A random walk with random pauses that records its path. */
export const wanders = define('wanders', async (steps: number, ctx) => {
  const pace = ctx.randomStream('pace')
  let place = 0
  for (let turn = 0; turn < steps; turn++) {
    await sleep(Math.random() * 4 * pace())
    place += ctx.random()
    ctx.step({ action: turn, observation: { z: -0, place }, reward: place, text: `at ${Date.now()}` })
  }
  return place
})

export const isRight = defineGrader({
  name: 'kit-is-right',
  module: import.meta.url,
  grade: ({ answer, groundTruth }) => {
    const success = answer === groundTruth
    return { reward: success ? 1 : 0, success, feedback: String(answer) }
  },
})

/** Kills or blocks the worker that grades, as the answer says. */
export const spoilsGrade = defineGrader({
  name: 'kit-spoils-grade',
  module: import.meta.url,
  grade: async ({ answer }) => {
    if (answer === 'block') for (;;);
    process.kill(process.pid, 'SIGKILL')
    await sleep(60_000)
    return 0
  },
})

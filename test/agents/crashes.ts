import { appendFileSync, readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { defineAgent } from '../../dist/index.js'

/** Each notes its start in a file, since what a killed worker would say of it is lost. */
const note = (file: string, what: string) => appendFileSync(file, `${what}\n`)

// A native crash, as far as anybody outside can tell: nothing is said before it.
const crash = () => process.kill(process.pid, 'SIGKILL')

interface Napping {
  readonly file: string
  readonly ms: number
  readonly salt?: number
}

export const naps = defineAgent({
  name: 'naps',
  run: async ({ file, ms }: Napping) => {
    note(file, 'nap')
    await sleep(ms)
    return 'slept'
  },
})

export const killer = defineAgent({
  name: 'killer',
  run: ({ file }: { file: string; n: number }) => {
    note(file, 'killer')
    crash()
    return new Promise<never>(() => {})
  },
})

/** Ends with its worker after a while, in one of these ways. */
export const ends = defineAgent({
  name: 'ends',
  run: async ({ ms, how }: { ms: number; how: 'blocks' | 'exits' | 'crashes' }) => {
    if (how !== 'blocks') await sleep(ms)
    if (how === 'exits') process.exit(3)
    if (how === 'crashes') crash()
    while (how === 'blocks');
    return new Promise<never>(() => {})
  },
})

/** Crashes natively after a while. */
export const lateKiller = defineAgent({
  name: 'late-killer',
  run: async ({ file, ms }: Napping) => {
    note(file, 'late')
    await sleep(ms)
    crash()
    return new Promise<never>(() => {})
  },
})

/** Its setup crashes natively, whichever task it is made for. */
export const badSetup = defineAgent({
  name: 'bad-setup',
  params: { file: '' },
  setup: ({ file }: { file: string }) => {
    note(file, 'setup')
    crash()
    return new Promise<never>(() => {})
  },
  run: () => 'never',
})

/** The first time, its worker is killed while this answer is on its way. */
export const killedWhileItAnswers = defineAgent({
  name: 'killed-while-it-answers',
  run: ({ file, bytes }: { file: string; bytes: number }) => {
    note(file, 'answers')
    if (readFileSync(file, 'utf8') === 'answers\n') setTimeout(crash, 5)
    return 'x'.repeat(bytes)
  },
})

/** Asks for a sub-task, does not wait for it, and takes its worker down. `fresh`: another sub-task each time. */
export const asksAndCrashes = defineAgent({
  name: 'asks-and-crashes',
  run: async ({ file, napMs, fresh }: { file: string; napMs: number; fresh: boolean }, ctx) => {
    note(file, 'parent')
    const salt = fresh ? Math.random() : 0
    ctx.runTask(naps.task({ file, ms: napMs, salt })).catch(() => {})
    await sleep(60)
    crash()
    return new Promise<never>(() => {})
  },
})

/** Waits for one sub-task after the other, each of which takes its worker down. */
export const outlives = defineAgent({
  name: 'outlives',
  run: async ({ file, killers }: { file: string; killers: number }, ctx) => {
    note(file, 'parent')
    const ends: string[] = []
    for (let n = 0; n < killers; n++) ends.push((await ctx.runTask(killer.task({ file, n }))).status)
    return ends
  },
})

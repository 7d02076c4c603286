import { hash } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { defineAgent } from '../../dist/index.js'
import { collectGarbage } from '../support/live-memory.ts'

/** Reads a blob, and says what it got. */
export const reader = defineAgent({
  name: 'reader',
  run: async ({ name, ms = 0 }: { name: string; ms?: number }, ctx) => {
    const bytes = await ctx.blob(name)
    await sleep(ms)
    return { sha256: hash('sha256', bytes), bytes: bytes.byteLength, ppid: process.ppid }
  },
})

/** Reads a blob, says so, and has it until it is told to go on. */
export const holder = defineAgent({
  name: 'holder',
  run: async (name: string, ctx) => {
    const bytes = await ctx.blob(name)
    await ctx.ask('hold')
    return hash('sha256', bytes)
  },
})

/** Says that it begins, and reads a blob. */
export const beginner = defineAgent({
  name: 'beginner',
  run: async (name: string, ctx) => {
    await ctx.ask('begin')
    return hash('sha256', await ctx.blob(name))
  },
})

/** What is wrong with a blob. */
export const failing = defineAgent({
  name: 'failing',
  run: (name: string, ctx) =>
    ctx.blob(name).then(
      () => 'nothing',
      ({ code, message }) => ({ code, message }) as { code: string; message: string },
    ),
})

/** Asks for a blob, and does not wait for it. */
export const leaver = defineAgent({
  name: 'leaver',
  run: async ({ name, ms }: { name: string; ms: number }, ctx) => {
    ctx.blob(name).catch(() => {})
    await sleep(ms)
    return 'left'
  },
})

/** How many megabytes its worker has in arrays. */
export const weigher = defineAgent({
  name: 'weigher',
  run: () => {
    collectGarbage()
    return process.memoryUsage().arrayBuffers / 1e6
  },
})

/** Has read a blob in its setup, under what its params say. */
export const setUpReader = defineAgent({
  name: 'set-up-reader',
  params: { blob: '' },
  setup: async ({ blob }, host) => hash('sha256', await host.blob(blob)),
  run: async (_: null, ctx) => ctx.state,
})

import { hash } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Agent, defineAgent } from '../agent.ts'
import { defineIn } from './define.ts'

/** Agents of the conformance kit that use blobs. */
const define = defineIn(import.meta.url)

/** The arrays that tasks of this worker received for each blob. */
const given = new Map<string, Set<Uint8Array>>()

/** Reads a blob, and returns its hash and how many copies this worker has made so far. */
export const usesBlob = define('uses-blob', async ({ name, ms = 0 }: { name: string; ms?: number }, ctx) => {
  try {
    const bytes = await ctx.blob(name)
    const sha256 = hash('sha256', bytes)
    const copies = given.get(sha256) ?? new Set()
    given.set(sha256, copies.add(bytes))
    await sleep(ms)
    return { sha256, bytes: bytes.byteLength, copies: copies.size, pid: process.pid }
  } catch (error) {
    const { code, message } = error as { code?: string; message: string }
    return { code, message }
  }
})

/** Reads a blob, lets the driver replace it, and reads it again. */
export const seesReplaced = define('sees-replaced', async (name: string, ctx) => {
  const before = hash('sha256', await ctx.blob(name))
  await ctx.ask('replace')
  return { before, after: hash('sha256', await ctx.blob(name)) }
})

/** Announces that it starts to load a blob, and loads it. */
export const loadsLarge = define('loads-large', async (name: string, ctx) => {
  await ctx.ask('begin')
  const bytes = await ctx.blob(name)
  return { bytes: bytes.byteLength, last: bytes.at(-1), pid: process.pid }
})

/** Kills its worker while the worker loads a blob. */
export const diesLoading = define('dies-loading', async ({ name, ms }: { name: string; ms: number }, ctx) => {
  ctx.blob(name).catch(() => {})
  await sleep(ms)
  process.kill(process.pid, 'SIGKILL')
  await sleep(60_000)
})

/** Reads a blob in `setup`; the hash is in its params. */
export const setsUpBlob: Agent<number, string, { sha256: string }> = defineAgent({
  name: 'kit-sets-up-blob',
  module: import.meta.url,
  params: { sha256: '' },
  setup: async ({ sha256 }, host) => hash('sha256', await host.blob(sha256)),
  run: async (ms: number, ctx) => {
    await sleep(ms)
    return ctx.state
  },
})

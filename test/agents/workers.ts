import { spawnSync } from 'node:child_process'
import { writeSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { defineAgent } from 'manyworlds'

/** Tells which process it runs in. */
export const pid = defineAgent({
  name: 'pid',
  run: async (ms: number) => {
    await sleep(ms)
    return process.pid
  },
})

/** Writes what is no frame into the channel of its worker. */
export const garbler = defineAgent({
  name: 'garbler',
  run: async () => {
    writeSync(3, Buffer.from([5, 0, 0, 0, 1, 2, 3, 4, 5]))
    await sleep(60_000)
  },
})

/** Uses memory and keeps it. */
const kept: Buffer[] = []
export const hoarder = defineAgent({
  name: 'hoarder',
  run: async (megabytes: number) => {
    kept.push(Buffer.alloc(megabytes * 2 ** 20, 1))
    return process.pid
  },
})

/** Blocks its event loop in a native call, where no timer fires. */
export const nativeBlock = defineAgent({
  name: 'native-block',
  run: async (ms: number) => {
    await sleep(50)
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
    return 'done'
  },
})

/** The same, where not even a debugger can interrupt it. */
export const deafBlock = defineAgent({
  name: 'deaf-block',
  run: async (ms: number) => {
    await sleep(50)
    spawnSync('sleep', [`${ms / 1000}`])
    return 'done'
  },
})

export const environment = defineAgent({ name: 'environment', run: (name: string) => process.env[name] })

/** Blocks its event loop for ever, a while after it has been timed out or has answered. */
export const lateBlocker = defineAgent({
  name: 'late-blocker',
  run: async (when: 'after its time-out' | 'after its answer') => {
    setTimeout(() => {
      for (;;) Math.random()
    }, 400)
    if (when === 'after its time-out') await sleep(60_000)
    return 'answered'
  },
})

import { spawn } from 'node:child_process'
import { appendFileSync, existsSync, readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { defineAgent } from '../../dist/index.js'

/** Takes as long as it is told, and notes its start and its end where everybody can read them. */
export const noting = defineAgent({
  name: 'noting',
  run: async ({ ms, file, id }: { ms: number; file: string; id: string }) => {
    appendFileSync(file, `start ${id} ${process.pid}\n`)
    await sleep(ms)
    appendFileSync(file, `end ${id} ${process.pid}\n`)
    return id
  },
})

/** Starts a process and waits for ever, the first time; then only tells its pid. */
export const withChild = defineAgent({
  name: 'with-child',
  run: async (file: string) => {
    const [earlier] = readFileSync(file, 'utf8').match(/\d+/) ?? []
    if (earlier !== undefined) return Number(earlier)
    appendFileSync(file, String(spawn('sleep', ['1000'], { stdio: 'ignore' }).pid))
    return new Promise<never>(() => {})
  },
})

/** Waits for ever the first time that it is started. Later starts tell which of the earlier ones still run. */
export const alone = defineAgent({
  name: 'alone',
  run: async (file: string) => {
    const earlier = readFileSync(file, 'utf8').match(/\d+/g) ?? []
    const running = earlier.filter((pid) => existsSync(`/proc/${pid}`))
    appendFileSync(file, `start ${process.pid}\n`)
    if (earlier.length === 0) await new Promise(() => {})
    return { starts: earlier.length + 1, running }
  },
})

/** Computes for so long on a node of speed 1; a node's speed is what its environment says. */
export const computing = defineAgent({
  name: 'computing',
  run: async (ms: number) => {
    const end = performance.now() + ms / Number(process.env.TEST_SPEED ?? 1)
    while (performance.now() < end) await sleep(Math.min(5, end - performance.now()))
    return process.env.TEST_SPEED
  },
})

/** The node that runs it. */
export const whereAmI = defineAgent({ name: 'where-am-i', run: async (ms: number) => sleep(ms, process.ppid) })

export const double = defineAgent({ name: 'double', run: (n: number) => 2 * n })

/** Takes down the node that it runs on, so many times; each start is a line of the file. */
export const fellsItsNode = defineAgent({
  name: 'fells-its-node',
  run: async ({ file, times }: { file: string; times: number }) => {
    appendFileSync(file, 'start\n')
    await sleep(100)
    if (readFileSync(file, 'utf8').split('\n').length - 1 > times) return 'survived'
    process.kill(process.ppid, 'SIGKILL')
    return new Promise<never>(() => {})
  },
})

/** Prints when it has ended: that belongs to no task. */
export const talksLater = defineAgent({
  name: 'talks-later',
  run: async (text: string) => {
    setTimeout(() => console.log(text), 50)
    return text
  },
})

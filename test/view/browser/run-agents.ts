import { existsSync, writeFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { defineAgent, defineGrader, Runners } from 'manyworlds'

export interface Walk {
  readonly room: number
  readonly ms: number
  /** The first attempt kills its worker, and leaves this file so that the next does not. */
  readonly killOnce?: string
  /** Walks on until this file exists. */
  readonly until?: string
}

/** A message that is too long to be shown whole. */
const LONG = '.\nNobody answers'.repeat(80)

/** Walks for a while. Every seventh door is locked. */
export const walker = defineAgent({
  name: 'walker',
  run: async ({ room, ms, killOnce, until }: Walk, ctx) => {
    ctx.step({ action: 'walk', observation: `room ${room}: <b>a lamp</b>` })
    await sleep(ms)
    while (until !== undefined && !existsSync(until)) await sleep(50)
    if (killOnce !== undefined && !existsSync(killOnce)) {
      writeFileSync(killOnce, '')
      process.kill(process.pid, 'SIGKILL')
      await sleep(10_000)
    }
    if (room % 7 === 3) throw new Error(`the door of room ${room} is <script>locked</script>${LONG}`)
    return { room }
  },
})

/** Has another agent walk. */
export const guide = defineAgent({
  name: 'guide',
  run: async (walk: Walk) => {
    await Runners.runTask([walker.task(walk)])
    return walk.room
  },
})

/** Who arrives has solved the task. */
export const arrived = defineGrader({ name: 'arrived', grade: () => true })

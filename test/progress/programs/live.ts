// Shows the progress of a run that is made up, and meanwhile does what its argument says, as a user's script might.
import { existsSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { chooseDisplay } from '../../../src/progress/choose.ts'
import type { RunObserver } from '../../../src/progress/observer.ts'
import { response, runStart } from '../made-up.ts'

const TASKS = 100
const observe = chooseDisplay({ progress: true, json: false, quiet: false, stream: process.stderr })!

/** Answers one task after the other, `each` before every answer. If a test names a file, the last tasks wait until it is there. */
async function work(run: RunObserver, each: (task: number) => void, pauseMs = 25): Promise<void> {
  const file = process.env.LIVE_GOES_ON
  for (let task = 1; task <= TASKS; task++) {
    while (file !== undefined && task > 90 && !existsSync(file)) await sleep(20)
    each(task)
    run.response(response(`task-${task}`, task % 10 === 0 ? { status: 'failed' } : {}))
    await sleep(pauseMs)
  }
}

const finished = { error: undefined, interrupted: false }

const scenarios: Record<string, () => Promise<void>> = {
  async prints() {
    const run = observe(runStart())
    await work(run, (task) => {
      if (task % 3 === 0) console.log(`out ${task}`)
      if (task % 7 === 0) console.error(`err ${task}`)
    })
    run.end(finished)
  },

  async printsParts() {
    process.stdout.write('begun before: ')
    const run = observe(runStart())
    await work(run, (task) => {
      if (task === 20) console.log('and ended')
      if (task > 20 && task <= 60) process.stdout.write(task % 10 === 0 ? `${task}\n` : `${task},`)
      if (task === 65) process.stdout.write('\x1b[31mred over ')
      if (task === 70) process.stdout.write('two writes\x1b[0m\n')
      if (task === 75) process.stdout.write('x'.repeat(process.stdout.columns))
      if (task === 80) process.stdout.write('|more\n')
      if (task === 85) process.stdout.write('own bar 1%')
      if (task === 90) process.stdout.write('\rown bar 99%')
      if (task === 95) process.stdout.write('\rown bar 100%\n')
    })
    process.stdout.write('not ended')
    run.notice('the disk is slow')
    run.end(finished)
  },

  async floods() {
    const run = observe(runStart())
    await work(run, (task) => {
      for (let line = 0; line < 50; line++) console.log(`${task}.${line}`)
    })
    run.end(finished)
  },

  /** Slow enough for a test to resize the terminal many times. */
  async resized() {
    const run = observe(runStart())
    await work(run, (task) => task % 10 === 0 && console.log(`line ${task}`), 40)
    run.end(finished)
  },

  async resizedWithPart() {
    const run = observe(runStart())
    await work(run, (task) => process.stdout.write(task % 50 === 0 ? '\n' : task % 50 < 30 ? '.' : ''), 40)
    run.end(finished)
  },

  async two() {
    const one = observe(runStart({ runId: 'first-run' }))
    const other = observe(runStart({ runId: 'second-run', total: 50 }))
    await Promise.all([
      work(one, (task) => task % 10 === 0 && console.log(`line ${task}`)),
      work(other, (task) => task === 50 && other.end(finished)),
    ])
    one.end(finished)
  },

  async throws() {
    const run = observe(runStart())
    setTimeout(() => {
      throw new Error('nobody catches this')
    }, 500)
    await work(run, () => {})
  },

  async exits() {
    const run = observe(runStart())
    await work(run, (task) => task === 30 && process.exit(3))
  },

  async killed() {
    const run = observe(runStart())
    await work(run, (task) => task === 30 && process.kill(process.pid, 'SIGTERM'))
  },

  /** For Ctrl-C, which it does not handle. */
  async waits() {
    const run = observe(runStart())
    await work(run, () => {}, 300)
  },
}

console.log('start')
await scenarios[process.argv[2]!]!()
console.log('end')

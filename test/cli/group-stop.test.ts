import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { RunFile } from 'manyworlds/runs'
import { expect, it } from 'vitest'
import { childrenOf, signal } from '../support/process-tree.ts'
import { inBackground, nodeForTest } from './background.ts'
import { manyworlds, newFolder } from './manyworlds.ts'
import { project } from './project.ts'

/**
 * A stop that reaches every process of a program, as systemd, `ray job stop` and many schedulers send it: workers first, which is
 * the worst order, then their driver or host. Nobody is charged, and the run can be resumed.
 */
function stopAll(pid: number, name: NodeJS.Signals): void {
  for (const child of childrenOf(pid).toReversed()) signal(child, name)
  signal(-pid, name)
}

const script = (gate: string, notes: string) => `
  import { appendFileSync, existsSync } from 'node:fs'
  import { defineAgent, Runners } from 'manyworlds'
  const work = defineAgent({
    name: 'work',
    run: async (n: number, ctx) => {
      appendFileSync(${JSON.stringify(notes)}, ctx.task.id + '\\n')
      while (!existsSync(${JSON.stringify(gate)})) await new Promise((done) => setTimeout(done, 20))
      return n
    },
  })
  const tasks = Array.from({ length: 6 }, (_, n) => work.task(n, { id: 't' + n, rerun: n === 0 ? 'never' : 'auto' }))
  await Runners.runTask(tasks, { concurrency: 1 })`

const started = (notes: string) => readFileSync(notes, 'utf8').trimEnd().split('\n')

function begin(args: readonly string[]) {
  const folder = newFolder()
  const [gate, notes] = [join(folder, 'gate'), join(folder, 'notes')]
  writeFileSync(notes, '')
  const { path, options } = project({ 's.ts': script(gate, notes) })
  const words = ['run', 's.ts', '--run-id', 'r', '--json', ...args]
  const run = inBackground(words, options, true)
  const outcome = () => {
    using file = RunFile.open('r', { store: path('.manyworlds/runs') })
    const responses = [...file.responses()].map(({ id, status, attempts }) => [id, status, attempts])
    return Object.fromEntries(responses.map(([id, ...rest]) => [id, rest.join(' ')]))
  }
  const resume = (...more: string[]) => manyworlds(['run', 's.ts', '--resume', 'r', ...args, ...more], options)
  const open = () => writeFileSync(gate, '')
  return { run, outcome, resume, open, notes }
}

const ALL = Object.fromEntries(Array.from({ length: 6 }, (_, n) => [`t${n}`, 'success 1']))
const tasksRun = (notes: string) => expect.poll(() => started(notes).length).toBe(2)

const CODES = { SIGTERM: 143, SIGINT: 130, SIGHUP: 129 } as const

it.each(['SIGTERM', 'SIGINT', 'SIGHUP'] as const)(
  '%s to driver and workers: running tasks finish within the grace period, and the rest is resumed',
  async (name) => {
    const { run, outcome, resume, open, notes } = begin(['--workers', '2', '--grace', '60s'])
    await tasksRun(notes)
    stopAll(run.child.pid!, name)
    await expect.poll(run.output).toContain('stopping: no new tasks are started; 2 tasks are running')
    // A terminal that closes may send it twice, which does not stop at once.
    if (name === 'SIGHUP') signal(run.child.pid!, name)
    open()
    expect(await run.exited).toBe(CODES[name])
    expect(outcome()).toEqual({ t0: 'success 1', t1: 'success 1' })
    expect(await resume()).toMatchObject({ code: 0 })
    expect(outcome()).toEqual(ALL)
    expect(started(notes).toSorted()).toEqual(Object.keys(ALL))
  },
  90_000,
)

it('a reader of the output that goes away does not end the run: what it has done is stored', async () => {
  const { run, outcome, open, notes } = begin(['--workers', '2'])
  await tasksRun(notes)
  run.child.stdout!.destroy()
  run.child.stderr!.destroy()
  open()
  expect(await run.exited).toBe(0)
  expect(outcome()).toEqual(ALL)
}, 90_000)

it('SIGTERM to driver and workers: what does not finish within the grace period is run again by the resume', async () => {
  const { run, outcome, resume, open, notes } = begin(['--workers', '2', '--grace', '100ms'])
  await tasksRun(notes)
  stopAll(run.child.pid!, 'SIGTERM')
  expect(await run.exited).toBe(143)
  expect(Object.values(outcome()).filter((status) => !String(status).startsWith('cancelled'))).toEqual([])
  open()
  // The one with rerun: 'never' had started.
  expect(await resume()).toMatchObject({ code: 1, stderr: expect.stringContaining("rerun: 'never' forbids another") })
  expect(outcome()).toEqual({ ...ALL, t0: 'crashed 1' })
  expect(started(notes).filter((id) => id === 't0')).toEqual(['t0'])
  expect(await resume('--retry-failed')).toMatchObject({ code: 0 })
  expect(outcome()).toEqual(ALL)
}, 90_000)

it('SIGTERM to a node and its workers: running tasks finish within the grace period, the rest runs elsewhere', async () => {
  const [first, second] = [await nodeForTest({ args: ['--workers', '2', '--grace', '60s'] }), await nodeForTest()]
  const { run, outcome, open, notes } = begin(['--nodes', `${first.address},${second.address}`])
  await expect.poll(() => started(notes).length).toBe(4)
  for (const child of childrenOf(first.pid)) signal(child, 'SIGTERM')
  first.child.kill('SIGTERM')
  open()
  expect(await run.exited, run.output()).toBe(0)
  expect(outcome()).toEqual(ALL)
  expect(started(notes).toSorted()).toEqual(Object.keys(ALL))
  expect(await first.exited).toBe(0)
}, 90_000)

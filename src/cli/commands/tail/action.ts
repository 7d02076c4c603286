import { setTimeout as sleep } from 'node:timers/promises'
import { withTrajectory } from '../../../response.ts'
import { RunFile } from '../../../store/run-file.ts'
import type { SeenStep } from '../../../store/step-tail.ts'
import type { RunOverview } from '../../../store/stored-task.ts'
import type { TaskResponse } from '../../../task.ts'
import { firstLine, oneLine } from '../../../text/escape-controls.ts'
import { inline } from '../../../text/inline.ts'
import { jsonLine } from '../../../text/json.ts'
import { painterFor } from '../../../text/paint.ts'
import { count, duration } from '../../../text/quantities.ts'
import { cut, displayWidth } from '../../../text/width.ts'
import type { Step } from '../../../trajectory/step.ts'
import type { TailArgs } from './spec.ts'

const LOOK_EVERY_MS = 200
const INTERRUPTED = 130

/** Follows a run by polling its file. */
export async function run({ run: name, dir, fromStart, steps, json }: TailArgs): Promise<number> {
  using file = RunFile.open(name, dir === undefined ? {} : { store: dir })
  let stopped = false
  process.once('SIGINT', () => {
    stopped = true
  })
  let seen = fromStart ? 0 : file.lastSeq()
  const stepTail = steps ? file.stepTail() : undefined
  if (!fromStart) for (const _ of stepTail?.next() ?? []);
  for (;;) {
    // Read the status first: then everything that was committed before the end of the run is visible.
    const { status, ...overview } = file.overview()
    for (const step of stepTail?.next() ?? []) process.stdout.write(`${json ? jsonLine(step) : stepLine(step)}\n`)
    for (const { seq, response } of file.seen(seen)) {
      seen = seq
      process.stdout.write(`${json ? jsonLine(withTrajectory(response)) : line(response)}\n`)
    }
    if (stopped) return INTERRUPTED
    if (status !== 'running') {
      if (!json) process.stderr.write(`${ending(status, overview)}\n`)
      return 0
    }
    await sleep(LOOK_EVERY_MS)
  }
}

/** `success  task-17  120 ms  { answer: 42 }` */
function line(response: TaskResponse): string {
  const paint = painterFor(process.stdout)
  const { status, id, timing, success } = response
  const text = success ? inline(response.answer) : `${response.error.code}: ${response.error.message}`
  const start = `${status.padEnd(9)}  ${firstLine(id)}  ${duration(timing.runMs)}  `
  const rest = cut(firstLine(text), Math.max(20, (process.stdout.columns ?? 120) - displayWidth(start)))
  return `${paint(success ? 'green' : 'red', start)}${rest}`
}

/** `step 3     task-17  1.2 s  { tool: 'search' }` */
function stepLine({ id, step }: SeenStep): string {
  const paint = painterFor(process.stdout)
  const { index, atMs } = step
  const text = whatHappened(step)
  const start = `${`step ${index}`.padEnd(9)}  ${firstLine(id)}  ${duration(atMs)}  `
  const rest = cut(firstLine(text), Math.max(20, (process.stdout.columns ?? 120) - displayWidth(start)))
  return `${paint('dim', start)}${rest}`
}

function whatHappened(step: Step): string {
  switch (step.kind) {
    case 'model':
      return `${step.server.model}: ${typeof step.reply.content === 'string' ? step.reply.content : inline(step.reply)}`
    case 'tool':
      return `${step.name} ${step.arguments.raw}`
    case 'note':
      if (step.text) return step.text
  }
  return inline(step.action ?? step.observation ?? (step.kind === 'note' ? (step.data ?? step.kind) : step.kind))
}

function ending(status: string, { runId, counts, total }: Omit<RunOverview, 'status'>): string {
  const done = Object.values(counts).reduce((sum, number) => sum + number, 0)
  const of = total === undefined ? '' : ` of ${count(total)}`
  return `run ${oneLine(runId)} ${status}: ${count(done)}${of} tasks, ${count(counts.success)} succeeded`
}

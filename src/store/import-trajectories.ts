import { hostname } from 'node:os'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { ImportedTrajectory } from '../import/imported-trajectory.ts'
import { ownPackage } from '../own-package.ts'
import { ListMemory } from '../trajectory/list-memory.ts'
import { type PackedStep, packedStepSize, packStep } from '../trajectory/packed-step.ts'
import { totalUsage } from '../trajectory/usage.ts'
import { ROW, type Row } from './messages.ts'
import { removeRuns } from './remove-run.ts'
import type { RunLocation } from './run-path.ts'
import { RunWriter } from './run-writer.ts'
import { ROLE } from './schema.ts'
import { StoreDb } from './store-db.ts'
import { storeError } from './store-errors.ts'
import { encode } from './values.ts'

/** The approximate size of a transaction. */
const BATCH_BYTES = 4 * 1024 * 1024
const BATCH_ROWS = 2000

interface ImportOptions {
  readonly runId: string
  /** Shown by `show` and `runs` as the script of the run. */
  readonly source: string
  /** If aborted, the run is removed. */
  readonly signal: AbortSignal
}

/** Creates a run from imported trajectories. Returns their number. If it fails, the partial run is removed. */
export async function importTrajectories(
  { path, shared }: RunLocation,
  trajectories: AsyncIterable<ImportedTrajectory>,
  { runId, source, signal }: ImportOptions,
): Promise<number> {
  const header = { runId, seed: 0, sequenceDependent: false, manyworlds: ownPackage.version, script: source }
  let store: StoreDb | undefined
  let run: number | undefined
  let done = false
  try {
    store = StoreDb.open(path, shared)
    const request = { path, shared, header, mode: 'start', durability: 'normal', keep: undefined } as const
    const { writer } = RunWriter.open(store, request, new Set())
    const rows = new Rows()
    const session = { pid: process.pid, host: hostname(), node: process.version, config: '{}', total: null }
    run = writer.write([], session)!.run
    for await (const trajectory of trajectories) {
      rows.add(trajectory)
      if (rows.isFull) writer.write(rows.take(), undefined)
      await nextTurn()
      signal.throwIfAborted()
    }
    writer.write([...rows.take(), [ROW.allRead]], undefined)
    writer.end({ how: 'finished', error: null })
    done = true
    return rows.tasks
  } catch (error) {
    throw signal.aborted ? error : storeError(error, path, 'write')
  } finally {
    store?.close(!shared)
    if (run !== undefined && !done) removeRuns([{ path, runId, run: shared ? run : undefined }])
  }
}

/** Makes the rows that recording a run would have written. */
class Rows {
  tasks = 0
  #rows: Row[] = []
  #bytes = 0
  readonly #agents = new Map<string, number>()

  get isFull(): boolean {
    return this.#rows.length > BATCH_ROWS || this.#bytes > BATCH_BYTES
  }

  take(): Row[] {
    const rows = this.#rows
    this.#rows = []
    this.#bytes = 0
    return rows
  }

  add(imported: ImportedTrajectory): void {
    const { id, input, metadata, groupId = null, rollout = null, steps, answer, error, cancelled, grade, ms } = imported
    const task = ++this.tasks
    const agent = this.#agent(imported.agent)
    const info = Object.keys(metadata).length > 0 ? encode({ metadata }) : null
    this.#rows.push([ROW.task, task, id, task - 1, 0, 0, agent, encode(input), info, null, null, groupId, rollout])
    const at = Date.now()
    if (steps.length > 0) {
      const lists = new ListMemory()
      const packed = steps.map((step): PackedStep => packStep(step, () => lists))
      this.#bytes += packed.reduce((sum, step) => sum + packedStepSize(step), 0)
      this.#rows.push([ROW.start, task, task, 1, null, at], [ROW.steps, task, 0, packed])
    }
    const usage = totalUsage(steps)
    const runUs = Math.round(ms * 1000)
    const status = error ? (cancelled ? 'cancelled' : 'failed') : 'success'
    const end = error ? ([error.code, null, encode(error)] as const) : ([null, encode(answer), null] as const)
    this.#rows.push([
      ...([ROW.attempt, task, false, ROLE.final, 1, at, status, 0, runUs, 0, null, ...end, null] as const),
      ...([Object.keys(usage).length > 0 ? usage : null, steps.length > 0 ? task : 0, null, null] as const),
    ])
    if (grade) {
      const { reward, success, grader } = grade
      const solved = success === null ? null : success ? 1 : 0
      this.#rows.push([ROW.grade, task, task, 1, at, reward, solved, grader.name, encode(grade)])
    }
  }

  #agent(name: string): number {
    let key = this.#agents.get(name)
    if (key === undefined) {
      this.#agents.set(name, (key = this.#agents.size + 1))
      // The module is empty, because the agent never ran here.
      this.#rows.push([ROW.agent, key, name, '', null, null])
    }
    return key
  }
}

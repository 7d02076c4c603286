import { type Cause, STATES, type TaskChunk } from '../../../src/view/api.ts'
import { GrowingColumns } from './growing-columns.ts'

const GIVEN = [
  'task',
  'parent',
  'agent',
  'state',
  'attempts',
  'cause',
  'endedAt',
  'runMs',
  'queuedMs',
  'tokensIn',
  'tokensOut',
  'costUsd',
  'reward',
  'solved',
  'worker',
  'version',
  'rollout',
] as const

/** `tokens` is the sum of `tokensIn` and `tokensOut`. */
export type NumberColumn = (typeof GIVEN)[number] | 'tokens'

const SUCCESS = STATES.indexOf('success')
const RUNNING = STATES.indexOf('running')
const UNSUCCESSFUL = new Set(
  ['failed', 'timeout', 'crashed', 'cancelled'].map((state) => STATES.indexOf(state as never)),
)

/** All tasks of a run, in typed arrays, so that 100,000 rows can be filtered and sorted between two frames. */
export class TaskTable {
  readonly #numbers = new GrowingColumns<NumberColumn>([...GIVEN, 'tokens'])
  readonly #rowOfTask = new Map<number, number>()
  readonly #withValues = new Set<NumberColumn | 'group'>()
  readonly ids: string[] = []
  readonly #lowerIds: string[] = []
  readonly groups: (string | null)[] = []
  readonly causes = new Map<number, Cause>()
  subTasks = 0

  get count(): number {
    return this.#numbers.count
  }

  /** Valid until rows are added. Longer than `count`. NaN: no value. */
  column(name: NumberColumn): Float64Array {
    return this.#numbers.of(name)
  }

  /** Whether any task has a value in this column. */
  has(name: NumberColumn | 'group'): boolean {
    return this.#withValues.has(name)
  }

  /** A value, or undefined if there is none. */
  value(name: NumberColumn, row: number): number | undefined {
    const value = this.#numbers.of(name)[row]!
    return Number.isNaN(value) ? undefined : value
  }

  rowOf(task: number): number | undefined {
    return this.#rowOfTask.get(task)
  }

  rowOfId(id: string): number | undefined {
    const row = this.ids.indexOf(id)
    return row < 0 ? undefined : row
  }

  /** The ids in lower case, computed when they are first needed for a filter. */
  lowerIds(): readonly string[] {
    for (let row = this.#lowerIds.length; row < this.ids.length; row++)
      this.#lowerIds.push(this.ids[row]!.toLowerCase())
    return this.#lowerIds
  }

  /** Whether the task ended without success, or was graded as unsolved. */
  isFailure(row: number): boolean {
    const state = this.column('state')[row]!
    return UNSUCCESSFUL.has(state) || (state === SUCCESS && this.column('solved')[row] === 0)
  }

  /** How many tasks are running, without sub-tasks. */
  running(): number {
    const [state, parent] = [this.column('state'), this.column('parent')]
    let count = 0
    for (let row = 0; row < this.count; row++) if (state[row] === RUNNING && parent[row] === 0) count++
    return count
  }

  /** Adds new tasks, and replaces those that have changed. */
  merge(chunk: TaskChunk): void {
    for (const cause of chunk.causes) this.causes.set(cause.key, cause)
    const rows = chunk.task.map((task, place) => this.#rowFor(task, chunk, place))
    for (const name of GIVEN) {
      const [column, values] = [this.#numbers.of(name), chunk[name]]
      let has = false
      for (let place = 0; place < rows.length; place++) {
        const value = values[place]
        column[rows[place]!] = value ?? Number.NaN
        has ||= value !== null
      }
      if (has) this.#withValues.add(name)
    }
    this.#sumTokens(rows)
    for (const [place, row] of rows.entries()) this.groups[row] = chunk.group[place]!
    if (chunk.group.some((group) => group !== null)) this.#withValues.add('group')
  }

  #rowFor(task: number, chunk: TaskChunk, place: number): number {
    const known = this.#rowOfTask.get(task)
    if (known !== undefined) return known
    const [row, id] = [this.#numbers.add(), chunk.id[place]!]
    this.#rowOfTask.set(task, row)
    this.ids.push(id)
    if (chunk.parent[place] !== 0) this.subTasks++
    return row
  }

  #sumTokens(rows: readonly number[]): void {
    const [tokens, tokensIn, tokensOut] = [this.column('tokens'), this.column('tokensIn'), this.column('tokensOut')]
    for (const row of rows) {
      const [a, b] = [tokensIn[row]!, tokensOut[row]!]
      tokens[row] = Number.isNaN(a) ? b : Number.isNaN(b) ? a : a + b
    }
    if (this.has('tokensIn') || this.has('tokensOut')) this.#withValues.add('tokens')
  }
}

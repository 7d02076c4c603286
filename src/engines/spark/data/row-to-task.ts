import { ManyworldsError } from '../../../errors.ts'
import type { TaskLike } from '../../../task.ts'
import type { SparkRow } from './source.ts'
import type { SparkTasksOptions } from './tasks.ts'

interface TaskMaker {
  /** `place`: the number of the row, from 1. */
  toTask(row: SparkRow, place: number): TaskLike
  /** The columns that it uses. Undefined: perhaps all, because a function of the user's gets the row. */
  readonly columns: readonly string[] | undefined
}

export function taskMaker({ id, input, agent, task }: SparkTasksOptions): TaskMaker {
  const readInput = inputReader(input)
  return {
    toTask(row, place) {
      const its = idOf(row, id, place)
      const which = `the task '${its}'`
      return {
        ...own('task', task, row, which),
        id: its,
        input: own('input', readInput, row, which),
        agent,
      } as TaskLike
    },
    columns: task === undefined ? columnsOf(id, input) : undefined,
  }
}

function inputReader(input: SparkTasksOptions['input']): (row: SparkRow) => unknown {
  if (input === undefined) return (row) => row
  if (typeof input === 'function') return input
  if (typeof input === 'string') return (row) => row[input]
  return (row) => Object.fromEntries(input.map((name) => [name, row[name]]))
}

function columnsOf(id: SparkTasksOptions['id'], input: SparkTasksOptions['input']): readonly string[] | undefined {
  if (typeof id === 'function' || typeof input === 'function' || input === undefined) return undefined
  return [...new Set([id, ...(typeof input === 'string' ? [input] : input)])]
}

function idOf(row: SparkRow, id: SparkTasksOptions['id'], place: number): string {
  const value = typeof id === 'string' ? row[id] : own('id', id, row, `row ${place}`)
  if (typeof value === 'string') return value
  if (typeof value === 'number' || typeof value === 'bigint') return String(value)
  const what = typeof id === 'string' ? `column '${id}'` : '`id`'
  if (value === null || value === undefined)
    throw wrong(
      `row ${place} has no id: ${what} is ${value}; leave such rows out with \`sql\`, or make ids of something else`,
    )
  throw wrong(
    `the id of row ${place} must be text or a number, but ${what} is ${value instanceof Date ? 'a date' : `a ${typeof value}`}; convert it to text with a function, or with \`sql\``,
  )
}

/** Calls a function of the user's with one row. */
function own<T>(name: string, made: ((row: SparkRow) => T) | undefined, row: SparkRow, which: string): T | undefined {
  try {
    return made?.(row)
  } catch (cause) {
    throw wrong(`\`${name}\` threw for ${which}: ${cause instanceof Error ? cause.message : String(cause)}`, cause)
  }
}

const wrong = (what: string, cause?: unknown) => new ManyworldsError('TASK_INVALID', `sparkTasks: ${what}`, { cause })

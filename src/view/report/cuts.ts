import { firstLine } from '../../text/escape-controls.ts'
import { count, counted } from '../../text/quantities.ts'
import { cut } from '../../text/width.ts'
import type { TaskDetails } from '../api.ts'
import { MOST_CHARS } from '../read/cut-texts.ts'

/** How a cut text begins in JSON: see `read/cut-texts.ts`. Inside a text, its quotes would be escaped. */
const MARK = '{"$":"cut"'

const hasCut = (value: unknown): boolean => JSON.stringify(value)?.includes(MARK) === true

/** Which texts of a task were cut. `json`: the same task as JSON, for a fast check whether any was. */
export function cutIn(task: TaskDetails, json: string): string[] {
  if (!json.includes(MARK)) return []
  const { input, info, grade, attempts } = task
  const parts = {
    ...{ input, info, grade },
    answer: attempts.map(({ answer }) => answer),
    error: attempts.map(({ error }) => error),
    episode: attempts.map(({ episode }) => episode),
  }
  return Object.entries(parts).flatMap(([name, part]) => (hasCut(part) ? [name] : []))
}

/** The most tasks that are named; the others are counted. */
const MOST_NAMED = 5
const MOST_PARTS = 3
const ID_COLUMNS = 60

/** The tasks of a report with texts that were cut. */
export class Cuts {
  readonly #tasks = new Set<string>()
  /** The cut texts of the first tasks. */
  readonly #named = new Map<string, { readonly id: string; readonly parts: string[] }>()
  /** The first task. */
  first: { readonly run: string; readonly task: string } | undefined

  add(run: string, id: string, parts: readonly string[]): void {
    if (parts.length === 0) return
    this.first ??= { run, task: id }
    const key = `${run}\0${id}`
    this.#tasks.add(key)
    const known = this.#named.get(key)
    if (known) known.parts.push(...parts)
    else if (this.#named.size < MOST_NAMED) this.#named.set(key, { id, parts: [...parts] })
  }

  /** A description for the user; empty if nothing was cut. */
  texts(): string[] {
    if (this.#tasks.size === 0) return []
    const named = [...this.#named.values()].map(({ id, parts }) => {
      const more = parts.length > MOST_PARTS ? [`${parts.length - MOST_PARTS} more`] : []
      return `${cut(firstLine(id), ID_COLUMNS)} (${[...parts.slice(0, MOST_PARTS), ...more].join(', ')})`
    })
    const others = this.#tasks.size - named.length
    const list = [...named, ...(others > 0 ? [`${count(others)} more`] : [])].join(', ')
    return [
      `the rest of texts with more than ${count(MOST_CHARS)} characters, of ${counted(this.#tasks.size, 'task')}: ${list}`,
    ]
  }
}

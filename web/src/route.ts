import { signal } from '@preact/signals'

/**
 * The address of a page is in the hash, so that a report file, which has no server, has the same addresses:
 *
 * - `#/`                                the runs and trainings
 * - `#/run/RUN`                         a run
 * - `#/run/RUN/task/TASK`               a task of a run
 * - `#/compare/RUN/RUN`                 two runs
 * - `#/training/TRAINING`               a training
 * - `#/trainings/TRAINING/TRAINING/…`   several trainings
 *
 * What a page shows (filters, sorting, an opened step) is in the query: `#/run/RUN?state=failed&sort=runMs`.
 */
export interface Route {
  readonly parts: readonly string[]
  readonly query: URLSearchParams
}

export const route = signal<Route>(parse(location.hash))

addEventListener('hashchange', () => {
  route.value = parse(location.hash)
})

export function parse(hash: string): Route {
  const [path = '', query = ''] = hash.replace(/^#?\/?/, '').split('?', 2)
  return { parts: path.split('/').filter(Boolean).map(decode), query: new URLSearchParams(query) }
}

/** Keeps a `%` that is not part of an escape, because a user may have typed the hash. */
function decode(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    return part
  }
}

/** The hash of a page. Ids may contain anything. */
export function hrefOf(parts: readonly string[], query: Readonly<Record<string, string | undefined>> = {}): string {
  const given = Object.entries(query).filter(
    (pair): pair is [string, string] => pair[1] !== undefined && pair[1] !== '',
  )
  const search = new URLSearchParams(given).toString()
  return `#/${parts.map(encodeURIComponent).join('/')}${search === '' ? '' : `?${search}`}`
}

export const runHref = (run: string, query?: Readonly<Record<string, string | undefined>>) =>
  hrefOf(['run', run], query)
export const taskHref = (run: string, task: string, query?: Readonly<Record<string, string | undefined>>) =>
  hrefOf(['run', run, 'task', task], query)
export const trainingHref = (training: string) => hrefOf(['training', training])
export const compareHref = (a: string, b: string) => hrefOf(['compare', a, b])

/** Goes to a page. */
export function go(href: string): void {
  location.hash = href
}

/** Changes the query of the current page, without an entry in the history. */
export function setQuery(changes: Readonly<Record<string, string | undefined>>): void {
  const { parts, query } = route.value
  const href = hrefOf(parts, { ...Object.fromEntries(query), ...changes })
  if (href === location.hash) return
  history.replaceState(null, '', href)
  route.value = parse(href)
}

import type { ComponentChildren } from 'preact'
import { useLayoutEffect, useRef, useState } from 'preact/hooks'
import { go } from '../route.ts'
import './data-table.css'
import { useWidth } from './use-width.ts'
import { useVirtualRows } from './virtual-rows.ts'

export interface Column {
  readonly key: string
  readonly title: string
  readonly hint?: string
  /** The least width in pixels. */
  readonly width: number
  /** The preferred width, which is reached before less important columns are shown. */
  readonly wish?: number
  /** The width in a narrow table, where the style sheet shows a sign instead of a word. */
  readonly narrow?: number
  /** Takes this share of the remaining space. */
  readonly grows?: number
  readonly isNumber?: boolean
  /** If the table is narrow, columns with the highest rank are left out first; those with rank 0 stay. */
  readonly rank: number
  cell(row: number): ComponentChildren
}

interface Sorting {
  readonly key: string
  readonly isDescending: boolean
  readonly keys: readonly string[]
  by(key: string, isDescending: boolean): void
}

interface Props {
  readonly label: string
  readonly columns: readonly Column[]
  readonly count: number
  readonly rowHeight: number
  keyOf(row: number): string | number
  /** Where a click on a row leads. A cell should have a link to it, with `data-row-link`, for the keyboard. */
  hrefOf?(row: number): string | undefined
  readonly sorting?: Sorting
  isMarked?(row: number): boolean
  /** The name under which the scroll position is kept while other pages are shown. */
  readonly remember?: string
}

const GAP = 16
/** Padding of the table, including the scroll bar. */
const PADDING = 36
const NARROW = 480
const positions = new Map<string, number>()

/** A table that renders only the rows in sight. Arrow keys, Home and End move between the links of rows. */
export function DataTable(props: Props) {
  const { label, count, rowHeight, sorting, remember } = props
  const box = useRef<HTMLDivElement>(null)
  const scroller = useRef<HTMLTableSectionElement>(null)
  const [active, setActive] = useState(0)
  const focusNext = useRef(false)
  const width = useWidth(box)
  const columns = fitting(props.columns, width)
  const { items, height, scrollTo } = useVirtualRows(scroller, count, rowHeight)
  useLayoutEffect(() => {
    const element = scroller.current
    if (!element || remember === undefined) return
    element.scrollTop = positions.get(remember) ?? 0
    return () => positions.set(remember, element.scrollTop)
  }, [remember])
  useLayoutEffect(() => {
    if (!focusNext.current) return
    const link = scroller.current?.querySelector<HTMLElement>(`[data-row="${active}"] [data-row-link]`)
    if (!link) return
    focusNext.current = false
    link.focus({ preventScroll: true })
  })
  useLayoutEffect(() => {
    const links = scroller.current?.querySelectorAll<HTMLElement>('[data-row-link]') ?? []
    const rowOf = (link: HTMLElement) => Number(link.closest<HTMLElement>('[data-row]')?.dataset.row)
    const isThere = [...links].some((link) => rowOf(link) === active)
    for (const [place, link] of links.entries())
      link.tabIndex = (isThere ? rowOf(link) === active : place === 0) ? 0 : -1
  })
  const move = (event: KeyboardEvent) => {
    const page = Math.max(1, Math.floor((scroller.current?.clientHeight ?? 0) / rowHeight) - 1)
    const to = target(event.key, active, page, count)
    if (to === undefined || !(event.target as HTMLElement).closest('[data-row-link]')) return
    event.preventDefault()
    focusNext.current = true
    setActive(to)
    scrollTo(to)
  }
  const isNarrow = width < NARROW
  const template = columns
    .map((column) => {
      const least = (isNarrow && column.narrow) || column.width
      return column.grows ? `minmax(${least}px, ${column.grows}fr)` : `${least}px`
    })
    .join(' ')
  const left = props.columns.length - columns.length
  const open = (event: MouseEvent) => {
    const row = (event.target as HTMLElement).closest<HTMLElement>('[data-row]')?.dataset.row
    const href = row === undefined ? undefined : props.hrefOf?.(Number(row))
    if (href !== undefined && isPlain(event)) go(href)
  }
  return (
    <div class={`data-table${isNarrow ? ' is-narrow' : ''}`} ref={box}>
      <table aria-label={label} aria-rowcount={count + 1}>
        <thead class="data-table-head">
          <tr class="data-table-row" aria-rowindex={1} style={{ gridTemplateColumns: template }}>
            {columns.map((column) => (
              <HeadCell key={column.key} column={column} sorting={sorting} />
            ))}
          </tr>
        </thead>
        <tbody
          class="data-table-body"
          ref={scroller}
          style={{ '--rows-height': `${height}px` }}
          onKeyDown={move}
          onClick={open}
        >
          {items.map(({ index, start }) =>
            index >= count ? null : (
              <tr
                key={props.keyOf(index)}
                class={`data-table-row${props.hrefOf?.(index) === undefined ? '' : ' opens'}`}
                data-row={index}
                data-marked={props.isMarked?.(index) ?? false}
                aria-rowindex={index + 2}
                style={{
                  gridTemplateColumns: template,
                  height: `${rowHeight}px`,
                  transform: `translateY(${start}px)`,
                }}
                onFocusIn={() => setActive(index)}
              >
                {columns.map((column) => (
                  <td
                    key={column.key}
                    class={`data-table-cell${column.isNumber ? ' number' : ''}`}
                    data-column={column.key}
                  >
                    {column.cell(index)}
                  </td>
                ))}
              </tr>
            ),
          )}
        </tbody>
      </table>
      {left > 0 && width > 0 && (
        <span class="hidden-text">{`${left === 1 ? 'One more column is' : `${left} more columns are`} shown in a wider window.`}</span>
      )}
    </div>
  )
}

function HeadCell({ column, sorting }: { readonly column: Column; readonly sorting: Sorting | undefined }) {
  const { key, title, hint, isNumber, narrow } = column
  const classes = `data-table-cell${isNumber ? ' number' : ''}${narrow === undefined ? '' : ' is-sign'}`
  if (!sorting?.keys.includes(key))
    return (
      <th scope="col" class={classes} title={hint}>
        {title === '' ? <span class="hidden-text">{hint}</span> : title}
      </th>
    )
  const isSorted = sorting.key === key
  // The first click sorts numbers in descending order, because people look for large ones, and texts from A.
  const next = isSorted ? !sorting.isDescending : isNumber === true
  return (
    <th scope="col" class={classes} aria-sort={isSorted ? (sorting.isDescending ? 'descending' : 'ascending') : 'none'}>
      <button type="button" title={hint} onClick={() => sorting.by(key, next)}>
        {title}
        {isSorted && (
          <span class="data-table-arrow" aria-hidden="true">
            {sorting.isDescending ? ' ↓' : ' ↑'}
          </span>
        )}
      </button>
    </th>
  )
}

/** The columns that fit. */
function fitting(columns: readonly Column[], width: number): readonly Column[] {
  if (width === 0) return columns.filter(({ rank }) => rank === 0)
  let room = width - PADDING
  const kept = new Set<Column>()
  for (const column of [...columns].sort((a, b) => a.rank - b.rank)) {
    room -= GAP + (width < NARROW ? (column.narrow ?? column.width) : (column.wish ?? column.width))
    if (room < 0 && column.rank > 0) break
    kept.add(column)
  }
  return columns.filter((column) => kept.has(column))
}

function target(key: string, active: number, page: number, count: number): number | undefined {
  const moves: Readonly<Record<string, number>> = {
    ArrowDown: active + 1,
    ArrowUp: active - 1,
    PageDown: active + page,
    PageUp: active - page,
    Home: 0,
    End: count - 1,
  }
  const to = moves[key]
  return to === undefined ? undefined : Math.max(0, Math.min(count - 1, to))
}

/** Whether a click is not on a link or control, does not end a text selection, and does not request a new tab. */
function isPlain(event: MouseEvent): boolean {
  if (event.ctrlKey || event.metaKey || event.shiftKey || event.defaultPrevented) return false
  if ((event.target as HTMLElement).closest('a, button, input, select, label')) return false
  return String(getSelection()) === ''
}

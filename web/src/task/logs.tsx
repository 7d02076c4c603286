import { useEffect, useRef, useState } from 'preact/hooks'
import type { LogLines } from '../../../src/view/api.ts'
import { visible } from '../parts/safe-text.tsx'
import { ScrollRegion } from '../parts/scroll-region.tsx'
import { useSource } from '../parts/source-context.ts'
import { useVirtualRows } from '../parts/virtual-rows.ts'
import { count, counted } from '../text/quantities.ts'
import { CopyButton } from './copy-button.tsx'
import './logs.css'

/** With more lines than this, the log has a search field and rows of equal height. */
const FEW_LINES = 60
const ROW_PX = 20
/** Only the beginning of longer lines is shown. */
const LINE_CHARS = 2000

interface Props {
  readonly run: string
  readonly task: string
  readonly attempt: number
  readonly logs: LogLines
}

/** The lines that the task printed. ANSI sequences are shown as text. */
export function Logs({ run, task, attempt, logs }: Props) {
  const source = useSource()
  const [all, setAll] = useState<LogLines | undefined>()
  const [problem, setProblem] = useState('')
  const [find, setFind] = useState('')
  useEffect(() => setAll(undefined), [attempt, logs])
  const { lines, left } = all ?? logs
  if (lines.length === 0) return <p class="dim">This attempt printed nothing.</p>
  const wanted = find.toLowerCase()
  const numbered = lines.map((text, place) => ({ text, number: place + 1 }))
  const found = wanted === '' ? numbered : numbered.filter(({ text }) => text.toLowerCase().includes(wanted))
  return (
    <div class="stack">
      <div class="row">
        {lines.length > FEW_LINES && (
          <label>
            <span class="hidden-text">Search in the log</span>
            <input
              type="search"
              placeholder="Search in the log"
              value={find}
              onInput={(event) => setFind(event.currentTarget.value)}
            />
          </label>
        )}
        <span class="dim" role="status">
          {wanted === '' ? counted(lines.length, 'line') : `${count(found.length)} of ${counted(lines.length, 'line')}`}
        </span>
        {left > 0 && (
          <button
            type="button"
            class="small-button"
            onClick={() =>
              void source.logs(run, task, attempt).then(setAll, (error: unknown) => setProblem(String(error)))
            }
          >
            Load {counted(left, 'more line')}
          </button>
        )}
        {problem !== '' && <span role="alert">{visible(problem)}</span>}
        <CopyButton text={() => lines.join('\n')} />
      </div>
      {lines.length > FEW_LINES ? <ManyLines lines={found} /> : <FewLines lines={found} />}
    </div>
  )
}

interface Line {
  readonly text: string
  readonly number: number
}

const FewLines = ({ lines }: { readonly lines: readonly Line[] }) => (
  <ol class="logs">
    {lines.map((line) => (
      <LogLine key={line.number} line={line} />
    ))}
  </ol>
)

function LogLine({ line: { text, number } }: { readonly line: Line }) {
  const [isWhole, setWhole] = useState(false)
  return (
    <li>
      <span class="logs-number dim">{number}</span>
      <span class="logs-text">
        {visible(isWhole ? text : text.slice(0, LINE_CHARS))}
        {!isWhole && text.length > LINE_CHARS && (
          <button type="button" class="small-button" onClick={() => setWhole(true)}>
            {count(text.length - LINE_CHARS)} more characters
          </button>
        )}
      </span>
    </li>
  )
}

/** One row per line. The selected line is shown completely below. */
function ManyLines({ lines }: { readonly lines: readonly Line[] }) {
  const scroller = useRef<HTMLDivElement>(null)
  const [chosen, setChosen] = useState<Line | undefined>()
  const { items, height } = useVirtualRows(scroller, lines.length, ROW_PX)
  return (
    <>
      <ScrollRegion class="logs-scroller" scroller={scroller} label="Log">
        <div class="logs-rows" style={{ height: `${height}px` }}>
          {items.map(({ index, start }) => {
            const line = lines[index]
            return (
              line && (
                <button
                  type="button"
                  key={line.number}
                  class="logs-row"
                  style={{ transform: `translateY(${start}px)` }}
                  onClick={() => setChosen(line)}
                >
                  <span class="logs-number dim">{line.number}</span>
                  <span class="cut">{visible(line.text.slice(0, 400))}</span>
                </button>
              )
            )
          })}
        </div>
      </ScrollRegion>
      {chosen && (
        <ol class="logs">
          <LogLine key={chosen.number} line={chosen} />
        </ol>
      )}
    </>
  )
}

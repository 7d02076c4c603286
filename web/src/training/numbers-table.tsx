import { useState } from 'preact/hooks'
import { SafeText } from '../parts/safe-text.tsx'
import { count } from '../text/quantities.ts'
import type { FigureKind, Update } from './update-figures.ts'

const MORE = 200

/** All figures of all updates as a table, for people who cannot use the charts. Its rows are created when it is opened. */
export function NumbersTable({
  updates,
  numbers,
  kinds,
}: {
  readonly updates: readonly Update[]
  readonly numbers: readonly ReadonlyMap<string, number>[]
  readonly kinds: readonly FigureKind[]
}) {
  const [isOpen, setOpen] = useState(false)
  return (
    <details class="panel" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        <h2>Table of numbers</h2>
      </summary>
      {isOpen && <Rows {...{ updates, numbers, kinds }} />}
    </details>
  )
}

function Rows({
  updates,
  numbers,
  kinds,
}: {
  readonly updates: readonly Update[]
  readonly numbers: readonly ReadonlyMap<string, number>[]
  readonly kinds: readonly FigureKind[]
}) {
  const [shown, setShown] = useState(MORE)
  const newest = updates.map((update, place) => ({ update, values: numbers[place]! })).reverse()
  return (
    <>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keys. */}
      <div class="scroll-x training-scroll" tabIndex={0}>
        <table class="plain">
          <thead>
            <tr>
              <th class="number">Update</th>
              <th class="number">Epoch</th>
              <th class="number">Version</th>
              {kinds.map(({ key, name }) => (
                <th key={key} class="number">
                  <SafeText text={name} />
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {newest.slice(0, shown).map(({ update, values }) => (
              <tr key={update.number}>
                <th class="number" scope="row">
                  {count(update.number)}
                </th>
                <td class="number">{count(update.epoch)}</td>
                <td class="number">{update.versionOut ?? update.versionIn}</td>
                {kinds.map(({ key, format }) => (
                  <td key={key} class="number">
                    {values.has(key) ? format(values.get(key)!) : ''}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {shown < newest.length && (
        <p class="row dim">
          The last {count(shown)} of {count(newest.length)} updates
          <button type="button" onClick={() => setShown(shown + MORE)}>
            Show more
          </button>
        </p>
      )}
    </>
  )
}

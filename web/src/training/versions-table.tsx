import { useState } from 'preact/hooks'
import { describeEvaluation } from '../../../src/cli/render/evaluation-figures.ts'
import type { TrainingDetails } from '../../../src/view/api.ts'
import { runHref } from '../route.ts'
import { bytes, count, dateTime } from '../text/quantities.ts'

/** With more versions, only those that are kept, evaluated, first or last are listed at first. */
const FEW = 40
const MORE = 500

export function VersionsTable({
  details,
  onPick,
}: {
  readonly details: TrainingDetails
  readonly onPick: (update: number) => void
}) {
  const { versions, overview, evaluations, updates } = details
  const [shown, setShown] = useState(0)
  const ofVersion = Map.groupBy(evaluations, ({ version }) => version)
  const collected = Map.groupBy(updates, ({ versionIn }) => versionIn)
  const isNotable = ({ version, kept }: (typeof versions)[number]) =>
    kept || ofVersion.has(version) || version === overview.best || version === 0
  const newest = [...versions].reverse()
  const notable = versions.length <= FEW ? newest : newest.filter(isNotable)
  const listed = shown === 0 ? notable.slice(0, MORE) : newest.slice(0, shown)
  return (
    <section class="panel stack" aria-labelledby="versions-title">
      <h2 id="versions-title">Versions</h2>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keys. */}
      <div class="scroll-x training-scroll" tabIndex={0}>
        <table class="plain">
          <thead>
            <tr>
              <th class="number">Version</th>
              <th class="number">Made by update</th>
              <th>When</th>
              <th>Weights</th>
              <th class="number">Size</th>
              <th>Evaluations</th>
              <th>Its episodes</th>
            </tr>
          </thead>
          <tbody>
            {listed.map(({ version, update, at, kept, bytes: size }) => (
              <tr key={version} class={version === overview.best ? 'training-best' : undefined}>
                <td class="number">
                  {count(version)}
                  {version === overview.best && <b> ★ best</b>}
                </td>
                <td class="number">
                  {update === null ? (
                    <span class="dim">untrained</span>
                  ) : (
                    <button type="button" class="training-link" onClick={() => onPick(update)}>
                      {count(update)}
                    </button>
                  )}
                </td>
                <td class="training-when">{dateTime(at)}</td>
                <td>{kept ? 'kept' : <span class="dim">removed</span>}</td>
                <td class="number">{bytes(size)}</td>
                <td>
                  {ofVersion.get(version)?.map((row) => (
                    <div key={row.split}>
                      <a href={runHref(row.run)}>{row.split}</a> {describeEvaluation(row.summary)}
                    </div>
                  ))}
                </td>
                <td>
                  {collected
                    .get(version)
                    ?.slice(0, 3)
                    .map(({ number, run }) =>
                      run === undefined ? null : (
                        <a key={number} class="training-episodes" href={runHref(run, { version: String(version) })}>
                          update {count(number)}
                        </a>
                      ),
                    )}
                  {(collected.get(version)?.length ?? 0) > 3 && (
                    <span class="dim">and {count(collected.get(version)!.length - 3)} more</span>
                  )}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {listed.length < versions.length && (
        <p class="row dim">
          {count(listed.length)} of {count(versions.length)} versions
          {shown === 0 && versions.length > FEW && ': those that are kept or evaluated'}
          <button type="button" onClick={() => setShown(shown + MORE)}>
            {shown === 0 ? 'Show all' : 'Show more'}
          </button>
        </p>
      )}
    </section>
  )
}

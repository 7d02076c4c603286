import { useState } from 'preact/hooks'
import type { StepTokens } from '../../../src/trajectory/step.ts'
import { visible } from '../parts/safe-text.tsx'
import { count, figure, percent } from '../text/quantities.ts'
import './tokens-view.css'

/** The color scale of tokens by probability: the less likely, the stronger. The last two levels are also underlined. */
const SCALE = [
  { from: 0.9, text: '90 % and more' },
  { from: 0.5, text: '50 %' },
  { from: 0.2, text: '20 %' },
  { from: 0.05, text: '5 %' },
  { from: 0.01, text: '1 %' },
  { from: 0, text: 'less than 1 %' },
] as const
const PAGE = 2000
const LEAST_LIKELY = 10

interface Props {
  readonly tokens: StepTokens
  readonly texts: readonly string[] | undefined
}

/** The sampled tokens, colored by how likely they were. */
export function TokensView({ tokens: { completion, logProbs, of, constrained }, texts }: Props) {
  const [most, setMost] = useState(PAGE)
  const ids = Array.from(completion)
  const textOf = (place: number) => texts?.[place] ?? `⟨${ids[place]}⟩`
  const describe = (place: number) => {
    const logProb = logProbs?.[place]
    return `token ${place}, id ${ids[place]}${logProb === undefined ? '' : `: log-probability ${figure(logProb)}, ${percent(Math.exp(logProb))}`}`
  }
  return (
    <div class="tokens">
      <div class="tokens-legend">
        {logProbs === null ? (
          <span>The server did not return log-probabilities.</span>
        ) : (
          <>
            <span>Probability</span>
            {SCALE.map(({ text }, level) => (
              <span class={`token token-${level}`}>{text}</span>
            ))}
          </>
        )}
        {texts === undefined && <span class="dim">Ids are shown, because the server did not return texts.</span>}
        {of === 'processed' && <span class="dim">After temperature and other sampling parameters.</span>}
        {constrained && <span class="dim">Decoding was constrained.</span>}
      </div>
      <p class="tokens-text">
        {ids.slice(0, most).map((_, place) => (
          <span
            class={`token ${logProbs === null ? '' : `token-${levelOf(logProbs[place] ?? 0)}`}`}
            title={describe(place)}
          >
            {visible(textOf(place))}
          </span>
        ))}
      </p>
      {most < ids.length && (
        <button type="button" class="small-button" onClick={() => setMost(most + 10 * PAGE)}>
          {count(ids.length - most)} more tokens
        </button>
      )}
      {logProbs !== null && <LeastLikely logProbs={logProbs} textOf={textOf} />}
    </div>
  )
}

/** The least likely tokens with their figures, for people who cannot hover. */
function LeastLikely({
  logProbs,
  textOf,
}: {
  readonly logProbs: Float64Array
  readonly textOf: (place: number) => string
}) {
  const places = Array.from(logProbs.keys())
    .sort((a, b) => logProbs[a]! - logProbs[b]!)
    .slice(0, LEAST_LIKELY)
  const sum = logProbs.reduce((sum, one) => sum + one, 0)
  return (
    <details>
      <summary>
        The least likely tokens
        <span class="dim">
          {' '}
          mean log-probability {figure(sum / Math.max(1, logProbs.length))}, of all {figure(sum)}
        </span>
      </summary>
      <table class="plain tokens-table">
        <thead>
          <tr>
            <th class="number">token</th>
            <th>text</th>
            <th class="number">log-probability</th>
            <th class="number">probability</th>
          </tr>
        </thead>
        <tbody>
          {places.map((place) => (
            <tr>
              <td class="number">{place}</td>
              <td class="mono">{visible(JSON.stringify(textOf(place)))}</td>
              <td class="number">{figure(logProbs[place]!)}</td>
              <td class="number">{percent(Math.exp(logProbs[place]!))}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </details>
  )
}

function levelOf(logProb: number): number {
  const probability = Math.exp(logProb)
  const level = SCALE.findIndex(({ from }) => probability >= from)
  return level < 0 ? SCALE.length - 1 : level
}

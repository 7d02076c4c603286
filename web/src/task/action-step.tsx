import { useState } from 'preact/hooks'
import type { ActionStep, Step } from '../../../src/trajectory/step.ts'
import { visible } from '../parts/safe-text.tsx'
import { count, figure, percent } from '../text/quantities.ts'
import { inlineText } from './inline-text.ts'
import { Labelled } from './labelled.tsx'
import { Rewards } from './rewards.tsx'
import type { ShownStep } from './shown-step.ts'
import { StepFrame, usageFacts } from './step-frame.tsx'
import { ValueView } from './value-view.tsx'

/** The most candidates that are shown at first, besides the chosen one. */
const CANDIDATES = 12
/** Candidates up to this length are shown side by side. */
const SHORT_CHARS = 32

interface Props {
  readonly shown: ShownStep
  readonly step: Step & ActionStep
  readonly href: string
  readonly loadWhole: (index: number) => Promise<void>
}

/** An action in an environment: the observation, the candidates, the choice, and the reward. */
export function ActionStepView({ shown, step, href, loadWhole }: Props) {
  const { observation, action, candidates, choice, logProb, value, mode, policy, usage } = step
  const facts = [
    mode === 'greedy' ? 'the best action' : 'a sampled action',
    policy ? `policy ${policy.name} v${policy.version}` : '',
    value === undefined ? '' : `value ${figure(value)}`,
    ...usageFacts(usage),
  ]
  return (
    <StepFrame shown={shown} href={href} loadWhole={loadWhole} facts={visible(facts.filter(Boolean).join(' · '))}>
      <div class="action-sides">
        <Labelled label="observation">
          <ValueView value={observation} />
        </Labelled>
        <div>
          <Labelled label="action">
            {candidates === undefined ? (
              <Chosen action={action} logProb={logProb} />
            ) : (
              <Candidates candidates={candidates} choice={choice} action={action} logProb={logProb} />
            )}
          </Labelled>
          <Rewards reward={step.reward} rewards={step.rewards} />
        </div>
      </div>
    </StepFrame>
  )
}

const Chosen = ({ action, logProb }: { readonly action: unknown; readonly logProb: number | null }) => (
  <div class="action-chosen">
    <ValueView value={action} />
    <Probability logProb={logProb} />
  </div>
)

function Probability({ logProb }: { readonly logProb: number | null }) {
  if (logProb === null) return null
  const probability = Math.min(1, Math.exp(logProb))
  return (
    <span class="action-probability" title={`log-probability ${figure(logProb)}`}>
      <span class="action-bar" aria-hidden="true">
        <span style={{ width: `${100 * probability}%` }} />
      </span>
      <span class="number">{percent(probability)}</span>
    </span>
  )
}

interface CandidatesProps {
  readonly candidates: readonly unknown[]
  readonly choice: number | undefined
  readonly action: unknown
  readonly logProb: number | null
}

function Candidates({ candidates, choice, action, logProb }: CandidatesProps) {
  const [most, setMost] = useState(CANDIDATES)
  const places = candidates.map((_, place) => place).slice(0, most)
  if (choice !== undefined && choice < candidates.length && choice >= most) places.push(choice)
  const isShort = places.every((place) => inlineText(candidates[place], SHORT_CHARS) !== undefined)
  const isChosen = (place: number) => place === choice
  return (
    <>
      {choice === undefined && <Chosen action={action} logProb={logProb} />}
      <ol class={isShort ? 'candidates candidates-short' : 'candidates'}>
        {places.map((place) => (
          <li class={isChosen(place) ? 'candidate candidate-chosen' : 'candidate'}>
            <span class="candidate-sign" aria-hidden="true">
              {isChosen(place) ? '▸' : ''}
            </span>
            <span class="candidate-value">
              {isChosen(place) && <span class="hidden-text">chosen: </span>}
              <CandidateValue value={candidates[place]} />
            </span>
            {isChosen(place) && <Probability logProb={logProb} />}
          </li>
        ))}
      </ol>
      {candidates.length > most && (
        <button type="button" class="small-button" onClick={() => setMost(10 * most)}>
          {count(candidates.length - most)} more candidates
        </button>
      )}
    </>
  )
}

function CandidateValue({ value }: { readonly value: unknown }) {
  const short = inlineText(value, 120)
  return short === undefined ? <ValueView value={value} level={2} /> : <code>{visible(short)}</code>
}

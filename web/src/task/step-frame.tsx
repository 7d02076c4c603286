import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import type { Usage } from '../../../src/trajectory/usage.ts'
import { dollars, duration, shortCount } from '../text/quantities.ts'
import { CopyButton } from './copy-button.tsx'
import { LoadWhole } from './load-whole.tsx'
import type { ShownStep } from './shown-step.ts'
import { ValueView } from './value-view.tsx'

interface Props {
  readonly shown: ShownStep
  readonly href: string
  readonly loadWhole: (index: number) => Promise<void>
  /** The facts in the footer of the step. */
  readonly facts?: ComponentChildren
  /** Additional buttons of the footer. */
  readonly buttons?: ComponentChildren
  readonly children: ComponentChildren
}

/** A step of the conversation: its number and time at the left, and figures and its raw form in the footer. */
export function StepFrame({ shown, href, loadWhole, facts, buttons, children }: Props) {
  const { step, cut } = shown
  const [isRaw, setRaw] = useState(false)
  return (
    <>
      <div class="step-gutter">
        <a href={href} class="number" title={`Link to step ${step.index}`}>
          {step.index}
        </a>
        <span class="dim number" title="Since the start of the attempt">
          {typeof step.atMs === 'number' ? `+${duration(Math.round(10 * step.atMs) / 10)}` : ''}
        </span>
      </div>
      <div class="step-body">
        {children}
        {cut > 0 && <LoadWhole missing={cut} what="this step" load={() => loadWhole(step.index)} />}
        <div class="step-foot">
          <span class="step-facts">{facts}</span>
          {buttons}
          <button type="button" class="small-button quiet" aria-expanded={isRaw} onClick={() => setRaw(!isRaw)}>
            raw
          </button>
        </div>
        {isRaw && <RawStep raw={shown.raw} />}
      </div>
    </>
  )
}

const RawStep = ({ raw }: { readonly raw: unknown }) => (
  <div class="step-raw">
    <CopyButton text={() => JSON.stringify(raw, null, 2)} label="Copy JSON" />
    <ValueView value={raw} />
  </div>
)

/** `1,204 tokens in, 61 out`, `$0.0012` */
export function usageFacts({ inputTokens, outputTokens, cachedTokens, costUsd }: Usage = {}): string[] {
  const tokens = [
    inputTokens === undefined ? '' : `${shortCount(inputTokens)} tokens in`,
    cachedTokens ? `${shortCount(cachedTokens)} cached` : '',
    outputTokens === undefined ? '' : `${shortCount(outputTokens)}${inputTokens === undefined ? ' tokens' : ''} out`,
  ]
  return [tokens.filter(Boolean).join(', '), costUsd === undefined ? '' : dollars(costUsd)].filter(Boolean)
}

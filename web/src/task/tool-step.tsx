import type { Step, ToolStep } from '../../../src/trajectory/step.ts'
import { duration } from '../text/quantities.ts'
import { CallView } from './call-view.tsx'
import type { ShownStep } from './shown-step.ts'
import { StepFrame, usageFacts } from './step-frame.tsx'

interface Props {
  readonly shown: ShownStep
  readonly step: Step & ToolStep
  readonly href: string
  readonly loadWhole: (index: number) => Promise<void>
}

/** A tool call with its result. */
export function ToolStepView({ shown, step, href, loadWhole }: Props) {
  const { name, arguments: given, result, error, ms, usage, call } = step
  const facts = [call === null ? "called by the agent's own code" : '', duration(ms), ...usageFacts(usage)]
  return (
    <StepFrame shown={shown} href={href} loadWhole={loadWhole} facts={facts.filter(Boolean).join(' · ')}>
      <CallView name={name} raw={given.raw} end={error === undefined ? { result } : { error }} />
    </StepFrame>
  )
}

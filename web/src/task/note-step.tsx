import type { NoteStep, Step } from '../../../src/trajectory/step.ts'
import { visible } from '../parts/safe-text.tsx'
import { ContentView } from './content-view.tsx'
import { episodeText } from './episode-text.ts'
import { Labelled } from './labelled.tsx'
import { Rewards } from './rewards.tsx'
import type { ShownStep } from './shown-step.ts'
import { StepFrame, usageFacts } from './step-frame.tsx'
import { TextBlock } from './text-block.tsx'
import { ValueView } from './value-view.tsx'

interface Props {
  readonly shown: ShownStep
  readonly step: Step & NoteStep
  readonly href: string
  readonly loadWhole: (index: number) => Promise<void>
}

/** A step that an agent recorded itself. */
export function NoteStepView({ shown, step, href, loadWhole }: Props) {
  const { text, data, action, observation, reward, ends, usage } = step
  return (
    <StepFrame shown={shown} href={href} loadWhole={loadWhole} facts={visible(usageFacts(usage).join(' · '))}>
      <div class="bubble-head">
        <span class="bubble-role">note</span>
      </div>
      {text !== undefined && <TextBlock text={text} />}
      {(action !== undefined || observation !== undefined) && (
        <div class="action-sides">
          {action !== undefined && (
            <Labelled label="action">
              <ContentView content={action} asMarkdown={false} />
            </Labelled>
          )}
          {observation !== undefined && (
            <Labelled label="observation">
              <ContentView content={observation} asMarkdown={false} />
            </Labelled>
          )}
        </div>
      )}
      {reward !== undefined && <Rewards reward={reward} />}
      {data !== undefined && (
        <Labelled label="data">
          <ValueView value={data} />
        </Labelled>
      )}
      {ends && (
        <Labelled label="the episode ends">
          <p>{episodeText(ends)}</p>
          {ends.finalObservation !== undefined && <ValueView value={ends.finalObservation} />}
        </Labelled>
      )}
    </StepFrame>
  )
}

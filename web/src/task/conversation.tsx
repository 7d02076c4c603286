import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import { SafeText } from '../parts/safe-text.tsx'
import { ActionStepView } from './action-step.tsx'
import { BranchHead } from './branch-head.tsx'
import { Guard } from './guard.tsx'
import { ModelStepView } from './model-step.tsx'
import { whenNear } from './near.ts'
import { NoteStepView } from './note-step.tsx'
import { StepFrame } from './step-frame.tsx'
import type { Item, Story } from './story.ts'
import { ToolStepView } from './tool-step.tsx'
import { ValueView } from './value-view.tsx'
import './conversation.css'

/** Items are drawn in groups, when they come near the visible part. */
const GROUP = 12
/** The assumed height of an item before it is drawn. */
const ITEM_PX = 150
const DEEPEST = 6

export interface ConversationProps {
  readonly run: string
  readonly story: Story
  /** The step that the address names. */
  readonly marked: number | undefined
  readonly hrefOf: (index: number) => string
  readonly loadWhole: (index: number) => Promise<void>
}

/**
 * The steps of an attempt as a conversation. Thousands of steps stay usable, because steps are drawn only when they come
 * near the visible part.
 */
export function Conversation(props: ConversationProps) {
  const { story, marked } = props
  const groups = useMemo(() => groupsOf(story.items), [story])
  const place = marked === undefined ? undefined : story.placeOf.get(marked)
  const target = place === undefined ? undefined : Math.floor(place / GROUP)
  return (
    <div class="conversation">
      {groups.map((items, group) => (
        <StillGroup
          key={group}
          {...props}
          marked={group === target ? marked : undefined}
          items={items}
          // Also draw the neighboring groups, so that the marked step does not move later.
          isForced={target !== undefined && Math.abs(group - target) <= 1}
        />
      ))}
    </div>
  )
}

function groupsOf(items: readonly Item[]): (readonly Item[])[] {
  const count = Math.ceil(items.length / GROUP)
  return Array.from({ length: count }, (_, group) => items.slice(group * GROUP, (group + 1) * GROUP))
}

interface GroupProps extends ConversationProps {
  readonly items: readonly Item[]
  readonly isForced: boolean
}

/** When another step is marked, only the affected groups are drawn again. */
function StillGroup(props: GroupProps) {
  return useMemo(() => <Group {...props} />, [props.items, props.isForced, props.marked, props.hrefOf, props.loadWhole])
}

function Group({ items, isForced, ...props }: GroupProps) {
  const [isNear, setNear] = useState(false)
  const ref = useRef<HTMLDivElement>(null)
  const isDrawn = isNear || isForced
  useEffect(() => {
    if (isForced) setNear(true)
    else if (!isNear) return whenNear(ref.current!, () => setNear(true))
    return undefined
  }, [isNear, isForced])
  if (!isDrawn) return <div ref={ref} style={{ height: `${items.length * ITEM_PX}px` }} />
  return (
    <div ref={ref}>
      {items.map((item) => (
        <Row
          key={item.kind === 'step' ? `step ${item.shown.step.index}` : `branch ${item.branch.id}`}
          item={item}
          {...props}
        />
      ))}
    </div>
  )
}

function Row({ item, ...props }: ConversationProps & { readonly item: Item }) {
  const lanes = Array.from({ length: Math.min(item.depth, DEEPEST) }, (_, level) => <span key={level} class="lane" />)
  if (item.kind === 'branch')
    return (
      <div class="step-row">
        {lanes}
        <BranchHead run={props.run} branch={item.branch} />
      </div>
    )
  const { step, isWellFormed } = item.shown
  const isMarked = step.index === props.marked
  return (
    <div class="step-row">
      {lanes}
      <article
        id={`step-${step.index}`}
        class={`step step-${isWellFormed ? step.kind : 'unknown'} ${isMarked ? 'step-marked' : ''}`}
        aria-label={`Step ${step.index}${isMarked ? ', marked' : ''}`}
        tabIndex={-1}
      >
        {isWellFormed && step.agent !== undefined && item.depth === 0 && (
          <div class="step-agent dim">
            <SafeText text={step.agent} />
          </div>
        )}
        <Guard fallback={<ValueView value={item.shown.raw} />}>
          <StepView item={item} {...props} />
        </Guard>
      </article>
    </div>
  )
}

function StepView({
  item,
  story,
  hrefOf,
  loadWhole,
}: ConversationProps & { readonly item: Extract<Item, { kind: 'step' }> }) {
  const { shown } = item
  const { step } = shown
  const frame = { shown, loadWhole, href: hrefOf(step.index) }
  if (!shown.isWellFormed)
    return (
      <StepFrame {...frame}>
        <p class="dim">This step is malformed. Its content:</p>
        <ValueView value={step} />
      </StepFrame>
    )
  switch (step.kind) {
    case 'model':
      return <ModelStepView {...frame} step={step} talk={story.talk} hrefOf={hrefOf} />
    case 'tool':
      return <ToolStepView {...frame} step={step} />
    case 'action':
      return <ActionStepView {...frame} step={step} />
    case 'note':
      return <NoteStepView {...frame} step={step} />
  }
}

import type { OpenedBranch } from '../trajectory/branches.ts'
import type { Step } from '../trajectory/step.ts'
import { endingText } from './ending-lines.ts'
import { firstLine } from './escape-controls.ts'
import { inline } from './inline.ts'
import { duration, usageText } from './quantities.ts'
import { labelledLines, type ValueLayout } from './value-lines.ts'
import { cut } from './width.ts'

const INDENT = '  '

/**
 * A note or an action: a line with its time, reward and usage, and its action and observation below. Fields that the head
 * of its branch already shows are left out.
 */
export function stepLines(step: Step, layout: ValueLayout, within?: OpenedBranch): string[] {
  const { index, atMs, kind, reward, usage, action, observation, opens, branch, agent, ...rest } = step
  const { ends, ...others } = rest as typeof rest & { ends?: Extract<Step, { kind: 'note' }>['ends'] }
  const more = {
    ...(branch === within?.id ? {} : { branch }),
    ...(agent === within?.agent ? {} : { agent }),
    ...others,
    ...endOf(ends),
  }
  const facts = [
    kind === 'note' ? '' : kind,
    `+${duration(atMs)}`,
    reward === undefined ? '' : `reward ${firstLine(inline(reward))}`,
    usage === undefined ? '' : usageText(usage),
  ]
  const head = `${index}  ${facts.filter((fact) => fact !== '').join('  ')}`
  const fields = Object.entries({ action, observation, ...more }).filter(([, value]) => value !== undefined)
  const inside = { ...layout, width: layout.width - INDENT.length }
  return [
    layout.paint('yellow', cut(head, layout.width)),
    ...fields.flatMap(([label, value]) => labelledLines(label, value, inside)).map((line) => INDENT + line),
  ]
}

/** The ending as a text. A malformed one is shown as it is. */
function endOf(ends: Extract<Step, { kind: 'note' }>['ends']): object {
  if (typeof ends?.ending?.kind !== 'string') return ends === undefined ? {} : { ends }
  const { finalObservation } = ends
  return { ends: endingText(ends), ...(finalObservation !== undefined && { 'final observation': finalObservation }) }
}

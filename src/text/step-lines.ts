import type { Step } from '../trajectory/step.ts'
import { inline } from './inline.ts'
import { duration, usageText } from './quantities.ts'
import { labelledLines, type ValueLayout } from './value-lines.ts'
import { firstLine } from './visible.ts'
import { cut } from './width.ts'

const INDENT = '  '

/** A step of a trajectory: when it was and what it brought on one line, and below it what was done and seen. */
export function stepLines(step: Step, layout: ValueLayout): string[] {
  const { index, atMs, kind, reward, usage, action, observation, opens, ...more } = step
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

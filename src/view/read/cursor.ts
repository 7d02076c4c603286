import type { Positions } from '../../store/paged/paged-run.ts'

/** The position of a client in the changes of a run, as a text that it sends back. */
export const cursorText = ({ seq, task, grade, start }: Positions): string => `${seq}.${task}.${grade}.${start}`

/** Undefined: the text is not a cursor. */
export function cursorOf(text: string): Positions | undefined {
  const [, seq, task, grade, start] = /^(\d{1,15})\.(\d{1,15})\.(\d{1,15})\.(\d{1,15})$/.exec(text) ?? []
  if (start === undefined) return undefined
  return { seq: Number(seq), task: Number(task), grade: Number(grade), start: Number(start) }
}

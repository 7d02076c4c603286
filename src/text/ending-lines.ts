import { isDeepStrictEqual } from 'node:util'
import type { TaskGrade } from '../grade/grade.ts'
import type { Episode, Truncation } from '../trajectory/episode.ts'
import { oneLine } from './escape-controls.ts'
import { excerptLines } from './excerpt.ts'
import { inline } from './inline.ts'
import { labelledLines, type ValueLayout } from './value-lines.ts'
import { wrap } from './wrap.ts'

const FEEDBACK = { chars: 1500, lines: 30 }

/** Limits whose name would mislead: a server reports only that a reply was cut, not by which limit. */
const LIMITS: Partial<Record<Truncation, string>> = { context: "maxOutputTokens or the model's context" }

/** `truncated by maxSteps, reward 0.5, not solved` */
export function endingText({ ending, reward, success }: Episode): string {
  const how = ending.kind === 'truncated' ? `truncated by ${LIMITS[ending.by] ?? ending.by}` : ending.kind
  const solved = success === null ? '' : success ? 'solved' : 'not solved'
  return [how, rewardText(reward), solved].filter((part) => part !== '').join(', ')
}

/** How an episode ended. The final observation is left out if it is also the answer, as in most episodes. */
export function episodeLines(episode: Episode, answer: unknown, layout: ValueLayout): string[] {
  const { ending, success, finalObservation } = episode
  const color =
    success === true ? 'green' : success === false ? 'red' : ending.kind === 'truncated' ? 'yellow' : 'reset'
  return [
    ...wrap(oneLine(endingText(episode)), layout.width).map((row) => layout.paint(color, row)),
    ...(isDeepStrictEqual(finalObservation, answer) || finalObservation === undefined
      ? []
      : labelledLines('final observation', finalObservation, layout)),
  ]
}

/** The grade, and its grader. */
export function gradeLines(
  { reward, success, parts, feedback, grader, error }: TaskGrade,
  layout: ValueLayout,
): string[] {
  const { paint, width } = layout
  const solved = success === null ? '' : success ? 'solved' : 'not solved'
  const figures = [rewardText(reward), solved, `by ${oneLine(grader.name)}`].filter((part) => part !== '').join(', ')
  const color = success === true ? 'green' : success === false ? 'red' : 'reset'
  return [
    ...wrap(figures, width).map((row) => paint(color, row)),
    ...Object.entries(parts ?? {}).flatMap(([name, { value, weight }]) =>
      wrap(oneLine(`${name}: ${inline(value)} (weight ${inline(weight)})`), width).map((row) => paint('dim', row)),
    ),
    ...(feedback === undefined ? [] : excerptLines(feedback, layout, FEEDBACK)),
    ...(error === undefined
      ? []
      : excerptLines(`${error.code}: ${error.message}`, layout, FEEDBACK).map((row) => paint('red', row))),
  ]
}

const rewardText = (reward: number | null): string => (reward === null ? '' : `reward ${inline(reward)}`)

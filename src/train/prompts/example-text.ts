import { judgementOfTrajectory } from '../../grade/judgement.ts'
import type { Step } from '../../trajectory/step.ts'
import type { Trajectory } from '../../trajectory/trajectory.ts'

/** The maximum length of each part, so that a long tool result does not displace the feedback. */
const CHARS = { input: 4000, answer: 3000, feedback: 3000, said: 600, tool: 600 }
const MAX_STEPS_SHOWN = 24

/** Describes one episode for the reflecting model: input, steps, answer and the grader's feedback. */
export function exampleText(number: number, input: unknown, episode: Trajectory): string {
  const { answer, ending } = episode
  const steps = stepsOf(episode.steps)
  const shown = steps.length <= MAX_STEPS_SHOWN ? steps : [...steps.slice(0, MAX_STEPS_SHOWN), '…']
  return [
    `## Example ${number}: ${verdict(episode)}`,
    part('What the assistant was given', input, CHARS.input),
    ...(shown.length > 0 ? [`What it did:\n${shown.map((line) => `- ${line}`).join('\n')}`] : []),
    ending.kind === 'failed' || ending.kind === 'cancelled'
      ? `It gave no answer: ${cut(ending.error.message, CHARS.answer)}`
      : part('Its answer', answer, CHARS.answer),
    ...(ending.kind === 'truncated' ? [`It was cut short (${ending.by}).`] : []),
    part('Feedback', feedbackOf(episode) ?? '(the grader says nothing but the reward)', CHARS.feedback),
  ].join('\n\n')
}

/** The feedback of a grader; undefined if there is none. */
export const feedbackOf = ({ grade }: Trajectory): string | undefined => grade?.feedback?.trim() || undefined

function verdict(episode: Trajectory): string {
  const { reward, solved: is, basis } = judgementOfTrajectory(episode)
  const solved = basis === 'return' || basis === 'trust' || is === null ? '' : is ? ', solved' : ', not solved'
  return `${reward === null ? 'no reward' : `reward ${Number(reward.toPrecision(4))}`}${solved}`
}

/** Tool calls, and the model's text beside them. Its last text is its answer. */
function stepsOf(steps: readonly Step[]): string[] {
  const lastCall = steps.findLastIndex(({ kind }) => kind === 'tool')
  return steps.flatMap((step, index) => {
    if (step.kind === 'tool') {
      const came = step.error === undefined ? shown(step.result) : `error: ${shown(step.error)}`
      return [`called ${step.name}(${cut(step.arguments.raw, CHARS.tool)}), which gave ${cut(came, CHARS.tool)}`]
    }
    if (step.kind === 'action')
      return [`chose ${cut(shown(step.action), CHARS.tool)} on seeing ${cut(shown(step.observation), CHARS.tool)}`]
    const said = step.kind === 'model' && step.role === 'agent' && index < lastCall ? shown(step.reply.content) : ''
    return said === '' ? [] : [`said: ${cut(said, CHARS.said)}`]
  })
}

const part = (title: string, value: unknown, chars: number) => `${title}:\n${cut(shown(value), chars)}`

function shown(value: unknown): string {
  if (typeof value === 'string') return value
  if (value === undefined || value === null) return ''
  try {
    return JSON.stringify(value) ?? String(value)
  } catch {
    return String(value)
  }
}

/** Keeps the start and the end, because the question often comes last. */
function cut(text: string, chars: number): string {
  if (text.length <= chars) return text
  const head = Math.ceil(chars * 0.7)
  return `${text.slice(0, head)} […${text.length - chars} characters…] ${text.slice(text.length - (chars - head))}`
}

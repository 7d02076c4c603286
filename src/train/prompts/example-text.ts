import type { Step } from '../../trajectory/step.ts'
import type { Trajectory } from '../../trajectory/trajectory.ts'
import { rewardOf } from '../failed-rollouts.ts'

/** The most of each part that the model sees which reflects: an endless tool result must not push the feedback out. */
const CHARS = { input: 4000, answer: 3000, feedback: 3000, said: 600, tool: 600 }
const MOST_STEPS_SHOWN = 24

/** One episode, for the model that reflects: what was given, done, answered, and what the grader said of it. */
export function exampleText(number: number, input: unknown, episode: Trajectory): string {
  const { answer, ending } = episode
  const steps = stepsOf(episode.steps)
  const shown = steps.length <= MOST_STEPS_SHOWN ? steps : [...steps.slice(0, MOST_STEPS_SHOWN), '…']
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

/** What a grader has written; undefined: nothing. */
export const feedbackOf = ({ grade }: Trajectory): string | undefined => grade?.feedback?.trim() || undefined

function verdict(episode: Trajectory): string {
  const reward = rewardOf(episode)
  const success = episode.grade?.success ?? episode.episode?.success ?? null
  const solved = success === null ? '' : success ? ', solved' : ', not solved'
  return `${reward === null ? 'no reward' : `reward ${Number(reward.toPrecision(4))}`}${solved}`
}

/** Calls of tools, and what the model said beside them. Its last words are its answer. */
function stepsOf(steps: readonly Step[]): string[] {
  const lastCall = steps.findLastIndex(({ kind }) => kind === 'tool')
  return steps.flatMap((step, place) => {
    if (step.kind === 'tool') {
      const came = step.error === undefined ? shown(step.result) : `error: ${shown(step.error)}`
      return [`called ${step.name}(${cut(step.arguments.raw, CHARS.tool)}), which gave ${cut(came, CHARS.tool)}`]
    }
    if (step.kind === 'action')
      return [`chose ${cut(shown(step.action), CHARS.tool)} on seeing ${cut(shown(step.observation), CHARS.tool)}`]
    const said = step.kind === 'model' && step.role === 'agent' && place < lastCall ? shown(step.reply.content) : ''
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

/** Beginning and end: what is asked often stands last. */
function cut(text: string, chars: number): string {
  if (text.length <= chars) return text
  const head = Math.ceil(chars * 0.7)
  return `${text.slice(0, head)} […${text.length - chars} characters…] ${text.slice(text.length - (chars - head))}`
}

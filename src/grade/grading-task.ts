import type { AnyAgent } from '../agent.ts'
import type { TaskLike, TaskResponse } from '../task.ts'
import type { Step } from '../trajectory/step.ts'
import { GRADE_INVALID } from './check-grade.ts'
import type { Grade, GradingErrorCode, TaskGrade } from './grade.ts'
import type { Grader } from './grader.ts'
import type { GradeSample } from './sample.ts'

/** The parts of the graded task that a sample needs. */
type Graded = Pick<TaskLike, 'input' | 'tools' | 'metadata' | 'groundTruth'>

/** Makes a task that grades one answer: a grader is an agent whose input is a sample and whose answer is a grade. */
export async function gradingTask(grader: Grader, task: Graded, response: TaskResponse): Promise<TaskLike> {
  const trajectory = grader.trajectory ? await stepsOf(response) : undefined
  const agent = { name: grader.name, ref: grader.ref, params: grader.params } as unknown as AnyAgent
  return { input: sampleOf(task, response, trajectory), agent }
}

/** Converts the response of a grading task to a grade. */
export function gradeFrom(grader: Grader, response: TaskResponse): TaskGrade {
  // First: the store finds it there (`store/grade-usage.ts`).
  const used = Object.keys(response.usage).length > 0 ? { usage: response.usage } : {}
  if (response.success) {
    const { success = null, ...grade } = response.answer as Grade
    return { ...used, ...grade, success, grader: nameOf(grader) }
  }
  const { name, message } = response.error
  const code = name === GRADE_INVALID ? 'GRADE_INVALID' : codeOf(response)
  return { ...used, ...noGrade(grader, code, isOurs(code) ? ofGrader(grader, message) : message) }
}

/** Whether the executor wrote the message, not the grader. */
const isOurs = (code: GradingErrorCode) => code !== 'GRADER_THREW' && code !== 'GRADE_INVALID'

/** To the executor, a grader is a task. Only the first line is its own; after it, it may quote stderr. */
const ofGrader = ({ name }: Grader, message: string): string =>
  message.replace(/^.*/, (line) => line.replaceAll(/\b(the|this) task\b/g, () => `grader '${name}'`))

export const noGrade = (grader: Grader, code: GradingErrorCode, message: string): TaskGrade => ({
  reward: null,
  success: null,
  grader: nameOf(grader),
  error: { code, message },
})

/** What a stored answer has instead of a grade until its grader has answered. */
export const pendingGrade = (grader: string): TaskGrade => ({
  reward: null,
  success: null,
  grader: { name: grader },
  error: { code: 'GRADING_PENDING', message: 'not graded yet' },
})

export const isPending = (grade: TaskGrade | undefined): boolean => grade?.error?.code === 'GRADING_PENDING'

/** Without a grader, the result of the environment is the grade. */
export function gradeOfEpisode({ episode, agentName }: TaskResponse): TaskGrade {
  const { reward, success } = episode!
  return { reward, success, grader: { name: agentName } }
}

function sampleOf(task: Graded, response: TaskResponse, trajectory: readonly Step[] | undefined): GradeSample {
  const { tools, metadata, groundTruth, input } = task
  const { id, groupId, rollout, episode } = response
  return {
    answer: response.answer,
    groundTruth,
    task: {
      ...{ id, input },
      ...(tools && { tools }),
      ...(metadata && { metadata }),
      ...(groupId !== undefined && { groupId }),
      ...(rollout !== undefined && { rollout }),
    },
    ...(episode && { episode }),
    ...(trajectory && { trajectory }),
  }
}

async function stepsOf(response: TaskResponse): Promise<Step[]> {
  const steps: Step[] = []
  for await (const step of response.steps()) steps.push(step)
  return steps
}

const nameOf = ({ name, sha256 }: Grader) => ({ name, sha256 })

function codeOf({ status, error }: TaskResponse): GradingErrorCode {
  if (error?.code === 'TASK_BLOCKED_WORKER') return 'GRADER_BLOCKED_WORKER'
  if (status === 'timeout') return 'GRADER_TIMEOUT'
  if (status === 'crashed') return 'GRADER_CRASHED'
  return status === 'cancelled' ? 'GRADING_CANCELLED' : 'GRADER_THREW'
}

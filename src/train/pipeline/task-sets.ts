import { createHash } from 'node:crypto'
import { questionOf } from '../../data/question.ts'
import { type SplitName, type SplitShares, splitOf } from '../../data/split.ts'
import { type Grader, graderFor } from '../../grade/grader.ts'
import { canonical } from '../../trajectory/canonical.ts'
import type { RolloutTask } from '../task-notes.ts'
import type { TrainingTasks } from './options.ts'
import { invalid, type Settings } from './settings.ts'

export type NamedTask = RolloutTask & { readonly id: string }

export interface TaskSets {
  readonly train: readonly NamedTask[]
  readonly validation: readonly NamedTask[]
  readonly test: readonly NamedTask[]
  /** Tasks of another kind, at which the agent should not become worse. */
  readonly 'off-task': readonly NamedTask[]
  /** Digests of all tasks: a training can only be resumed with the same tasks and graders. */
  readonly digests: TaskDigests
}

/** By part, so that an error can name what has changed. */
export interface TaskDigests {
  /** Ids, parts and inputs. */
  readonly inputs: string
  readonly groundTruths: string
  readonly metadata: string
  /** The graders that the tasks, the training or the agent have. */
  readonly graders: string
}

const SHARES: SplitShares = { train: 0.8, validation: 0.1, test: 0.1 }
const DIGEST_CHARS = 16
const PARTS: readonly SplitName[] = ['train', 'validation', 'test']

/** Reads the tasks of a training, and splits them if they are one list. */
export async function taskSets(settings: Settings): Promise<TaskSets> {
  const { tasks } = settings
  const divided = isDivided(tasks)
  if (divided && settings.split !== undefined)
    throw invalid('`split` applies to a single list of tasks, but `tasks` is already split')
  const sets = divided ? await readParts(tasks, settings) : await divide(tasks, settings)
  if (sets.train.length === 0) throw invalid('there are no training tasks')
  refuseSingleRollouts(settings, sets.train)
  refuseEvaluationGraders(settings, sets.train)
  const all = { ...sets, 'off-task': await readTasks(settings.offTask ?? [], settings.agent, 'offTask') }
  return { ...all, digests: digestsOf(settings, all) }
}

function digestsOf(settings: Settings, sets: Omit<TaskSets, 'digests'>): TaskDigests {
  const tasks = Object.entries(sets).flatMap(([part, list]) => list.map((task) => ({ part, task })))
  const digest = (of: (one: (typeof tasks)[number]) => unknown) => {
    const sum = createHash('sha256')
    for (const one of tasks) sum.update(`${canonical(of(one))}\n`)
    return sum.digest('hex').slice(0, DIGEST_CHARS)
  }
  return {
    inputs: digest(({ part, task }) => [part, task.id, task.input]),
    groundTruths: digest(({ task }) => task.groundTruth),
    metadata: digest(({ task: { metadata, groupId, tools } }) => [metadata, groupId, tools]),
    graders: digest(({ task }) => graderOf(task, settings)?.sha256),
  }
}

const graderOf = ({ grade }: NamedTask, { run, agent }: Settings): Grader | undefined =>
  graderFor({ agent, ...(grade && { grade }) }, run.grade)

/** A learner finds out what a lenient grader accepts. Validation and test may use one. */
function refuseEvaluationGraders(settings: Settings, train: readonly NamedTask[]): void {
  for (const task of train) {
    const grader = graderOf(task, settings)
    if (grader?.evaluationOnly)
      throw invalid(
        `grader '${grader.name}' of training task '${task.id}' is for evaluation only, because a learner would exploit it (an answer that contains every solution passes); use a stricter grader, such as exactMatch(), numeric() or json()`,
      )
  }
}

/** GRPO and RLOO cannot learn from a single rollout per task. */
function refuseSingleRollouts({ rollouts, algorithm, learner }: Settings, train: readonly NamedTask[]): void {
  const name = algorithm.advantages?.name
  if (rollouts > 1 || learner !== undefined || (name !== 'grpo' && name !== 'rloo')) return
  if (train.some(({ groupId }) => groupId !== undefined)) return
  throw invalid(
    `'${name}' compares the rollouts of a task with each other; set \`rollouts\` to at least 2, or use other \`advantages\`, such as { name: 'reinforce' }`,
  )
}

type Parts = Record<SplitName, NamedTask[]>

const isDivided = (tasks: TrainingTasks): tasks is Extract<TrainingTasks, { train: unknown }> => 'train' in tasks

async function divide(
  tasks: Exclude<TrainingTasks, { train: unknown }>,
  { agent, split = SHARES }: Pick<Settings, 'agent' | 'split'>,
): Promise<Parts> {
  const parts: Parts = { train: [], validation: [], test: [] }
  const named = await readTasks(tasks, agent, '')
  for (const task of named) parts[splitOf(questionOf(task), split)].push(task)
  return parts
}

async function readParts(
  tasks: Extract<TrainingTasks, { train: unknown }>,
  { agent }: Pick<Settings, 'agent'>,
): Promise<Parts> {
  const unknown = Object.keys(tasks).find((key) => !(PARTS as readonly string[]).includes(key))
  if (unknown !== undefined) throw invalid(`unknown key '${unknown}' in \`tasks\`; allowed: ${PARTS.join(', ')}`)
  const parts: Parts = { train: [], validation: [], test: [] }
  const seen = new Map<string, SplitName>()
  for (const part of PARTS) {
    parts[part] = await readTasks(tasks[part] ?? [], agent, part)
    for (const task of parts[part]) {
      const question = questionOf(task)
      const other = seen.get(question)
      if (other !== undefined && other !== part)
        throw invalid(
          `task '${task.id}' of \`tasks.${part}\` has the same question as a task of \`tasks.${other}\`; remove it from one of them, because a task that is trained on cannot be used for evaluation`,
        )
      seen.set(question, part)
    }
  }
  return parts
}

async function readTasks(
  tasks: Exclude<TrainingTasks, { train: unknown }>,
  agent: Settings['agent'],
  part: string,
): Promise<NamedTask[]> {
  const where = part === '' ? '`tasks`' : part === 'offTask' ? '`offTask`' : `\`tasks.${part}\``
  if (!(Symbol.iterator in tasks || Symbol.asyncIterator in tasks))
    throw invalid(
      `${where} must be a list of tasks${part === '' ? `, or { train, validation, test }; it is an object with the keys ${Object.keys(tasks).join(', ') || '(none)'}` : ''}`,
    )
  const named: NamedTask[] = []
  const ids = new Set<string>()
  for await (const task of tasks) {
    const index = named.length
    const id = task?.id ?? `t${index + 1}`
    if (typeof task !== 'object' || task === null || !('input' in task))
      throw invalid(`task ${index + 1} of ${where} must be an object with an \`input\`, such as agent.task(input)`)
    const { name, module } = task.agent?.ref ?? agent.ref
    if (name !== agent.ref.name || module !== agent.ref.module)
      throw invalid(`task '${id}' of ${where} is for agent '${name}', but the training is for agent '${agent.name}'`)
    if (task.dependsOn !== undefined)
      throw invalid(`task '${id}' of ${where} has \`dependsOn\`; training tasks cannot depend on others`)
    if (ids.has(id)) throw invalid(`two tasks of ${where} have the id '${id}'`)
    ids.add(id)
    named.push({ ...task, agent, id })
  }
  return named
}

import type { Policy } from '../../agents/policy.ts'
import { ManyworldsError } from '../../errors.ts'
import type { Algorithm } from '../algorithm.ts'
import type { Settings } from './settings.ts'
import type { TaskSets } from './task-sets.ts'

/** What a curve depends on, as it is stored. What may change between sessions is not in it: epochs, engine, workers, how often it is evaluated. */
export function storedSettings(
  { agent, algorithm, rollouts, tasksPerUpdate, seed, curriculum, overlap, control, evaluate }: Settings,
  learned: Required<Algorithm> | undefined,
  { name: policy, ...own }: Policy & { readonly settings?: unknown },
  sets: TaskSets,
  prepared?: unknown,
): Readonly<Record<string, unknown>> {
  const { advantages, normalizer = 'actions', failed = 'drop' } = algorithm
  const { microBatch: _, ...kept } = learned ?? {}
  const settings = {
    code: agent.ref.fingerprint,
    ...{ agent: agent.name, params: agent.params, policy, seed, rollouts, tasksPerUpdate },
    // Weights of other policies say themselves what they belong to.
    ...(own.serving && { policySettings: own.settings }),
    algorithm: { advantages, normalizer, failed, ...(learned ? kept : { learner: prepared ?? 'own' }) },
    ...{ curriculum: curriculum ?? false, overlap: overlap ?? false, control: control ?? false },
    // Versions that were evaluated in another way could not be compared.
    evaluate: evaluate ? { ...evaluate, every: undefined } : false,
    tasks: {
      train: sets.train.length,
      validation: sets.validation.length,
      test: sets.test.length,
      ...(sets['off-task'].length > 0 && { offTask: sets['off-task'].length }),
      digest: sets.digest,
    },
  }
  // As it will be read back: without what is undefined, and with Infinity, which JSON does not have, as null.
  return JSON.parse(JSON.stringify(settings)) as Readonly<Record<string, unknown>>
}

/** A training goes on as it was begun: with other settings the curve would not be one. */
export function refuseOtherSettings(id: string, before: unknown, now: unknown): void {
  const changes = [...differences(before, now, '')].filter((change) => !change.startsWith('code:'))
  if (changes.length === 0) return
  throw new ManyworldsError(
    'TRAINING_CHANGED',
    `training '${id}' was begun with other settings:\n${changes.map((change) => `  ${change}`).join('\n')}\nGo on with those, or begin another training (another \`runId\`). What may change: epochs, tasksPerEpoch, evaluate.every, patience, the budget of a learner, the engine and its workers`,
  )
}

/** The code of the agent is not what it was. That is no reason to refuse it: a comment may have been added. */
export function isOtherCode(before: unknown, now: unknown): boolean {
  const [a, b] = [before, now].map((settings) => (settings as { code?: string }).code)
  return a !== undefined && b !== undefined && a !== b
}

function* differences(before: unknown, now: unknown, path: string): Generator<string> {
  if (isPlain(before) && isPlain(now)) {
    for (const key of new Set([...Object.keys(before), ...Object.keys(now)]))
      yield* differences(before[key], now[key], path === '' ? key : `${path}.${key}`)
    return
  }
  if (JSON.stringify(before) !== JSON.stringify(now)) yield `${path}: ${shown(before)} before, ${shown(now)} now`
}

const isPlain = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const MAX_SHOWN = 80

function shown(value: unknown): string {
  const text = value === undefined ? 'nothing' : JSON.stringify(value)
  return text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}…` : text
}

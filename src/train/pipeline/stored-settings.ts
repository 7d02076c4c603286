import type { Policy } from '../../agents/policy.ts'
import { ManyworldsError } from '../../errors.ts'
import type { Algorithm } from '../algorithm.ts'
import type { Settings } from './settings.ts'
import type { TaskSets } from './task-sets.ts'

/**
 * The settings that a curve depends on, as stored. Settings that may change between sessions are excluded: epochs,
 * engine, workers, evaluation frequency.
 */
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
    // The weights of other policies include their settings.
    ...(own.serving && { policySettings: own.settings }),
    algorithm: { advantages, normalizer, failed, ...(learned ? kept : { learner: prepared ?? 'own' }) },
    ...{ curriculum: curriculum ?? false, overlap: overlap ?? false, control: control ?? false },
    // Versions evaluated in different ways could not be compared.
    evaluate: evaluate ? { ...evaluate, every: undefined } : false,
    tasks: {
      train: sets.train.length,
      validation: sets.validation.length,
      test: sets.test.length,
      ...(sets['off-task'].length > 0 && { offTask: sets['off-task'].length }),
      ...sets.digests,
    },
  }
  // As it will be read back: without undefined values, and with null for Infinity, which JSON cannot represent.
  return JSON.parse(JSON.stringify(settings)) as Readonly<Record<string, unknown>>
}

/** Refuses to resume a training with different settings, because the curve would no longer be one experiment. */
export function refuseOtherSettings(id: string, before: unknown, now: unknown): void {
  const changes = [...differences(before, now, '')].filter((change) => !change.startsWith('code:'))
  if (changes.length === 0) return
  throw new ManyworldsError(
    'TRAINING_CHANGED',
    `training '${id}' was started with different settings:\n${changes.map((change) => `  ${change}`).join('\n')}\nRestore those settings, or start a new training (another \`runId\`). These may change: epochs, tasksPerEpoch, evaluate.every, patience, the budget of a learner, the engine and its workers`,
  )
}

/** Whether the agent's code has changed. This is reported but not refused, because the change may be only a comment. */
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

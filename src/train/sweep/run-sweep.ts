import { dirname } from 'node:path'
import { ManyworldsError } from '../../errors.ts'
import type { RunConfig } from '../../run-config.ts'
import { runHost } from '../../runners/run-host.ts'
import { defaultStore, newRunId, runLocation } from '../../store/run-path.ts'
import { type FoundTraining, listFound } from '../../store/trainings/find-training.ts'
import { StoredTraining } from '../../store/trainings/stored-training.ts'
import { checkTrainingId } from '../../store/trainings/training-ids.ts'
import { nextEpoch } from '../pipeline/next-epoch.ts'
import { type CheckedOptions, checkedOptions } from '../pipeline/open-training.ts'
import type { PipelineOptions } from '../pipeline/options.ts'
import { resultOf } from '../pipeline/result.ts'
import { selfDirectedLearner } from '../pipeline/self-directed-learner.ts'
import { refuseOtherSettings, storedSettings } from '../pipeline/stored-settings.ts'
import { Training } from '../pipeline/training.ts'
import type { EvalRow, UpdateRow } from '../pipeline/training-record.ts'
import type { EpochTarget } from '../pipeline/updates.ts'
import { invalid, optionsAt, pointsOf, type SweepGrid, type SweepPoint, seedsOf } from './grid.ts'
import type { SweepResult } from './summary.ts'

export { summarizeSweep } from './summary.ts'

/** A validated sweep. */
export interface SweepPlan {
  readonly options: PipelineOptions
  readonly grid: SweepGrid
  readonly points: readonly SweepPoint[]
}

/** A sweep with its id and the options of the host program. */
export interface SweepSession {
  readonly id: string
  readonly plan: SweepPlan
  /** The run options of every training. */
  readonly config: RunConfig
  readonly trainings: readonly PlannedTraining[]
}

interface PlannedTraining {
  readonly id: string
  readonly point: SweepPoint
  readonly seed: number
  readonly checked: CheckedOptions
  readonly target: EpochTarget
}

/** Reports every mistake, at every point, that can be found before anything starts. */
export function planSweep(options: PipelineOptions, grid: SweepGrid): SweepPlan {
  const points = pointsOf(grid)
  const { epochs } = grid
  if (epochs !== undefined && !(Number.isInteger(epochs) && epochs >= 1))
    throw invalid(`\`epochs\` must be a whole number of at least 1, not a list; it is ${String(epochs)}`)
  const plan = { options, grid, points }
  trainingsOf(plan, {}, 'sweep')
  return plan
}

export function openSweep(plan: SweepPlan): SweepSession {
  const host = runHost()
  const { settings } = checkedOptions(plan.options)
  const { runId, resume, seed, rollouts, ...config } = host ? host.configure(settings.run) : settings.run
  const typed = { ...(seed !== undefined && { seed }), ...(rollouts !== undefined && { rollouts }) }
  if (rollouts !== undefined && plan.grid.rollouts)
    throw invalid('`rollouts` is swept, but also set; leave one of them out')
  const given = (resume === 'auto' ? undefined : resume) ?? runId ?? newRunId()
  // A sweep may also be identified by one of its trainings, such as the last existing one.
  const suffix = trainingsOf(plan, typed, '').find(({ id }) => given.endsWith(id))?.id ?? ''
  const id = given.slice(0, given.length - suffix.length)
  const trainings = trainingsOf(plan, typed, id)
  for (const training of trainings) checkTrainingId(training.id)
  host?.sweep?.()
  return { id, plan, config, trainings }
}

function trainingsOf(
  { options, grid, points }: SweepPlan,
  typed: Pick<RunConfig, 'seed' | 'rollouts'>,
  sweep: string,
): readonly PlannedTraining[] {
  const { epochs, tasksPerEpoch } = runHost()?.training ?? {}
  const seeds = seedsOf(grid, typed.seed ?? options.seed ?? 0)
  let sets: CheckedOptions['sets'] | undefined
  return points.flatMap((point) =>
    seeds.map((seed) => {
      const all = checkedOptions({ ...optionsAt({ ...options, ...typed }, point), seed })
      // Read once for all trainings, because the tasks may come from a stream.
      const checked: CheckedOptions = { ...all, sets: (sets ??= all.sets) }
      const { settings } = checked
      return {
        ...{ id: [sweep, point.label, `seed${seed}`].filter((part, place) => place === 0 || part !== '').join('.') },
        ...{ point, seed, checked },
        target: {
          epochs: epochs ?? grid.epochs ?? settings.epochs,
          tasksPerEpoch: tasksPerEpoch ?? settings.tasksPerEpoch,
        },
      }
    }),
  )
}

/** Runs one training after the other. Each uses all workers. */
export async function* runSweep(session: SweepSession): AsyncGenerator<SweepResult, undefined> {
  for (const training of session.trainings) {
    const { id, point, seed } = training
    const facts = { id, ...point, seed }
    const stored = await storedResult(session, training)
    if (stored) {
      yield { ...facts, ...stored, restored: true }
      continue
    }
    yield { ...facts, restored: false, ...(await trained(session, training)) }
  }
}

/** The result of a training that an earlier session finished. */
async function storedResult({ config }: SweepSession, { id, checked, target }: PlannedTraining) {
  const store = config.store ?? defaultStore()
  if (store === false) return undefined
  const found = findStored(dirname(runLocation(store, id).path), id)
  if (found === undefined) return undefined
  using training = StoredTraining.at(found)
  const { settings, algorithm, policy } = checked
  // Only the learner can tell whether it has finished, when the training is opened.
  if (selfDirectedLearner(settings)) return undefined
  const sets = await checked.sets()
  refuseOtherSettings(id, training.config(), storedSettings(settings, algorithm, policy, sets))
  const updates = training.updates() as readonly UpdateRow[]
  const evaluations = training.evaluations() as readonly EvalRow[]
  if (nextEpoch({ settings, sets, updates, evaluations }, target) !== undefined) return undefined
  return resultOf({ updates, evaluations })
}

/**
 * Errors of the store are ignored here, because opening it for writing reports them, and completes a store whose
 * creation was interrupted.
 */
function findStored(folder: string, id: string): FoundTraining | undefined {
  try {
    return listFound(folder).find((one) => one.id === id)
  } catch {
    return undefined
  }
}

/** Trains to the end. A learner that fails is a result too, because some settings are tried to find the limit. */
async function trained({ id: sweep, config }: SweepSession, { id, checked, target }: PlannedTraining) {
  const training = await Training.open(checked, { id, config, sweep })
  try {
    while ((await training.epoch(target)) !== undefined);
    return training.result
  } catch (error) {
    if (!ManyworldsError.is(error) || error.code !== 'LEARNER_FAILED') throw error
    const { code, message } = error
    return { ...training.result, error: { code, message } }
  } finally {
    await training.close()
  }
}

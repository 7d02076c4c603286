import type { Policy } from '../../agents/policy.ts'
import { ManyworldsError } from '../../errors.ts'
import { ALL_WORKERS, type RunConfig } from '../../run-config.ts'
import { resolveConfig } from '../../run-config-schema.ts'
import { type RunControl, type RunHost, runHost } from '../../runners/run-host.ts'
import { identify } from '../../runners/run-identity.ts'
import { defaultStore } from '../../store/run-path.ts'
import { wordsOf } from '../../text/thrown.ts'
import type { AdvantageSettings } from '../advantage-settings.ts'
import { Alarms } from '../alarms.ts'
import type { Algorithm } from '../algorithm.ts'
import { type OpenSinks, openSinks } from '../sinks/open-sinks.ts'
import { sinkOf } from '../sinks/sink-of.ts'
import { Evaluations } from './evaluations.ts'
import { GroupTrainer } from './group-trainer.ts'
import { LearningTrainer, type Trainer } from './learning-trainer.ts'
import type { TrainingObserver } from './observer.ts'
import { withSinks, writeUpdate } from './observer-with-sinks.ts'
import { algorithmOf, policyOf, refuseUnusedTimeout } from './open-learner.ts'
import { openRecord } from './open-record.ts'
import { observeTraining } from './progress.ts'
import { Sampler, type SamplerState } from './sampler.ts'
import { learnerTraining, type SelfDirectedLearner, selfDirectedLearner } from './self-directed-learner.ts'
import { ServedVersions } from './served-versions.ts'
import { invalid, type Settings, settingsOf, withHostOptions } from './settings.ts'
import { isOtherCode, refuseOtherSettings, storedSettings } from './stored-settings.ts'
import { type TaskSets, taskSets } from './task-sets.ts'
import type { TrainingRecord } from './training-record.ts'
import { TrainingRuns } from './training-runs.ts'
import { Updates } from './updates.ts'
import { Versions } from './versions.ts'

/** Validated options, and what they refer to. */
export interface CheckedOptions {
  readonly settings: Settings
  readonly policy: Policy
  /** Undefined if the user provides the learner. */
  readonly algorithm: Required<Algorithm> | undefined
  /** Read once, when first needed, because they may come from a stream. */
  readonly sets: () => Promise<TaskSets>
}

/** GAE needs the value of each action's state. */
function refuseWithoutValue({ name }: AdvantageSettings, policy: Policy): void {
  const { settings } = policy as { readonly settings?: { readonly hasValue?: boolean } }
  if (name === 'gae' && policy.model !== undefined)
    throw invalid(
      `advantages by 'gae' need a value head, but policy '${policy.name}' is a language model, which has none; use 'grpo', 'rloo', 'reinforce' or 'best'`,
    )
  if (name === 'gae' && settings?.hasValue === false)
    throw invalid(
      `advantages by 'gae' need a value head, but policy '${policy.name}' has none; set its option \`value: true\``,
    )
}

/** Applies `--overlap` of the command line. It keeps the `maxStaleness` that the script sets. */
function withTypedOverlap(options: unknown): unknown {
  if (!runHost()?.training?.overlap || typeof options !== 'object' || options === null) return options
  const { overlap } = options as { readonly overlap?: unknown }
  return typeof overlap === 'object' ? options : { ...options, overlap: true }
}

/** Reports every mistake that can be found before anything starts. */
export function checkedOptions(options: unknown): CheckedOptions {
  const given = settingsOf(withTypedOverlap(options))
  const policy = policyOf(given)
  const advantages = given.algorithm.advantages ?? policy.learning?.advantages ?? { name: 'grpo' }
  const settings = { ...given, algorithm: { ...given.algorithm, advantages } }
  const algorithm = algorithmOf(given, policy)
  refuseWithoutValue(advantages, policy)
  refuseUnusedTimeout(given)
  new Alarms(settings.alarms)
  resolveConfig(settings.run)
  let sets: Promise<TaskSets> | undefined
  return { settings, policy, algorithm, sets: () => (sets ??= taskSets(settings)) }
}

/** A training that this process opened before, and its configuration. */
export interface OpenedTraining {
  readonly id: string
  readonly config: RunConfig
}

/** A training of a sweep, new or resumed. */
export interface SweptTraining extends OpenedTraining {
  readonly sweep: string
}

export interface TrainingParts {
  readonly config: RunConfig
  readonly settings: Settings
  readonly sets: TaskSets
  readonly record: TrainingRecord
  readonly runs: TrainingRuns
  readonly served: ServedVersions
  readonly trainer: Trainer
  /** The learner, if it selects its own training data. */
  readonly selfDirected: SelfDirectedLearner | undefined
  readonly versions: Versions
  readonly updates: Updates
  readonly evaluations: Evaluations
  readonly observer: TrainingObserver
  readonly sinks: OpenSinks
  readonly control: RunControl
  readonly host: RunHost | undefined
}

/** Opens a training, new or resumed. */
export async function openParts(
  checked: CheckedOptions,
  named: OpenedTraining | SweptTraining | undefined,
): Promise<TrainingParts> {
  const { settings: given, policy, algorithm } = checked
  const host = runHost()
  const config = named ? namedConfig(named) : host ? host.configure(given.run) : given.run
  const settings = withHostOptions(given, config)
  const resolved = resolveConfig(config)
  const identity = identify(resolved)
  const sets = await checked.sets()
  const selfDirected = selfDirectedLearner(settings)
  const about = selfDirected && learnerTraining(settings, policy, sets, config)
  const stored = storedSettings(settings, algorithm, policy, sets, about && selfDirected.prepare?.(about))
  const record = await openRecord(identity, resolved, settings, policy, stored)
  let opened: Pick<TrainingParts, 'trainer' | 'observer' | 'sinks' | 'served'> | undefined
  try {
    refuseOtherSettings(record.id, record.config, stored)
    const { history } = record
    const file = identity.place?.path
    const watch = observeTraining(settings, host)
    const shown = watch({
      ...{ id: record.id, file, agent: settings.agent.name, engineName: resolved.engineName },
      ...{
        workerNum: resolved.workerNum === ALL_WORKERS ? undefined : resolved.workerNum,
        concurrency: resolved.concurrency,
      },
      tasks: { train: sets.train.length, validation: sets.validation.length, test: sets.test.length },
      ...{ updates: history.updates, evaluations: history.evals },
      ...(named && 'sweep' in named && { sweep: named.sweep }),
    })
    const typedSinks = (host?.training?.log ?? []).map(sinkOf)
    const sinkAbout = { trainingId: record.id, config: stored }
    const sinks = openSinks([...settings.sinks, ...typedSinks], sinkAbout, (line) => shown.notice(line))
    const observer = withSinks(shown, sinks, history.updates.length)
    if (isOtherCode(record.config, stored))
      observer.notice(`the code of agent '${settings.agent.name}' has changed since the training began`)
    const { runId: _, resume: __, progress: ___, ...runConfig } = config
    const served = new ServedVersions(policy, (line) => observer.notice(line))
    const runs = new TrainingRuns(settings.agent, { ...runConfig, store: file ?? false }, served, (runId) => ({
      response: ({ restored }) => observer.episode(runId, restored === true),
      notice: (line) => observer.notice(line),
    }))
    const notice = (line: string) => observer.notice(line)
    const trainer = about
      ? new GroupTrainer({ learner: selfDirected, seed: settings.seed, training: { ...about, notice }, runs })
      : new LearningTrainer(settings, algorithm, notice)
    opened = { trainer, observer, sinks, served }
    const last = history.updates.at(-1)
    // The process may have been killed before it wrote this to the sinks.
    if (last) writeUpdate(sinks, last)
    const first = await trainer.start(last && (await record.readFile(last.stateSha)))
    const versions = new Versions(record, first)
    if (history.versions.length === 0) {
      const row = await versions.write(first, null)
      record.version(row)
      versions.stored(row, first)
    }
    const ids = sets.train.map(({ id }) => id)
    const state = (history.sampler ?? undefined) as SamplerState | undefined
    const sampler = new Sampler(ids, settings.seed, settings.curriculum?.floor, state)
    const control = {
      ...{ runId: record.id, file, running: () => runs.running() },
      stop: (graceMs: number) => runs.stop(graceMs),
    }
    const shared = { config, settings, policy, algorithm, sets, record, runs, trainer, versions, sampler, observer }
    const updates = new Updates(shared)
    const evaluations = new Evaluations(shared)
    // The process may have been killed before this.
    if (last) await updates.thin(last.number)
    host?.started(control)
    return { ...shared, served, selfDirected, updates, evaluations, sinks, control, host }
  } catch (error) {
    await opened?.trainer.close()
    await opened?.served.close()
    await opened?.sinks.close()
    try {
      if (ManyworldsError.is(error) && error.code === 'TRAINING_CHANGED') record.leave()
      else record.close('failed', wordsOf(error).message)
    } catch {
      // The disk may be full; report the original error.
    }
    opened?.observer.end({ error: error as Error, interrupted: false })
    throw error
  }
}

function namedConfig(named: OpenedTraining | SweptTraining): RunConfig {
  const { id: runId, config } = named
  if (!('sweep' in named)) return { ...config, runId, resume: runId }
  const isStored = (config.store ?? defaultStore()) !== false
  return { ...config, runId, ...(isStored && { resume: 'auto' }) }
}

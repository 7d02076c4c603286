import type { Policy } from '../../agents/policy.ts'
import { ManyworldsError } from '../../errors.ts'
import { ALL_WORKERS, type RunConfig } from '../../run-config.ts'
import { resolveConfig } from '../../run-config-schema.ts'
import { identify } from '../../runners/run-identity.ts'
import { type RunControl, type Surroundings, surroundings } from '../../runners/surroundings.ts'
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
import { logged, tellUpdate } from './logged.ts'
import type { TrainingObserver } from './observer.ts'
import { algorithmOf, policyOf } from './open-learner.ts'
import { openRecord } from './open-record.ts'
import { observeTraining } from './progress.ts'
import { Sampler, type SamplerState } from './sampler.ts'
import { ServedVersions } from './served-versions.ts'
import { invalid, type Settings, settingsOf, withTyped } from './settings.ts'
import { isOtherCode, refuseOtherSettings, storedSettings } from './stored-settings.ts'
import { type TaskSets, taskSets } from './task-sets.ts'
import type { TrainingRecord } from './training-record.ts'
import { TrainingRuns } from './training-runs.ts'
import { Updates } from './updates.ts'
import { Versions } from './versions.ts'
import { learnerTraining, type WantingLearner, wantingLearner } from './wanting.ts'

/** Options that were checked, with what belongs to them. */
export interface CheckedOptions {
  readonly settings: Settings
  readonly policy: Policy
  /** Undefined: the learner is the user's, and has its own. */
  readonly algorithm: Required<Algorithm> | undefined
  /** Read once, when they are first needed: they may come from a stream. */
  readonly sets: () => Promise<TaskSets>
}

/** What a value head says is needed for each action. */
function refuseWithoutValue({ name }: AdvantageSettings, policy: Policy): void {
  const { settings } = policy as { readonly settings?: { readonly hasValue?: boolean } }
  if (name === 'gae' && policy.model !== undefined)
    throw invalid(
      `advantages by 'gae' need a value head, and policy '${policy.name}' is a language model, which has none: take 'grpo', 'rloo', 'reinforce' or 'best'`,
    )
  if (name === 'gae' && settings?.hasValue === false)
    throw invalid(
      `advantages by 'gae' need a policy with a value head, and '${policy.name}' has none: give it \`value: true\``,
    )
}

/** Everything that can be known to be wrong before anything starts. */
export function checkedOptions(options: unknown): CheckedOptions {
  const given = settingsOf(options)
  const policy = policyOf(given)
  const advantages = given.algorithm.advantages ?? policy.learning?.advantages ?? { name: 'grpo' }
  const settings = { ...given, algorithm: { ...given.algorithm, advantages } }
  const algorithm = algorithmOf(given, policy)
  refuseWithoutValue(advantages, policy)
  new Alarms(settings.alarms)
  resolveConfig(settings.run)
  let sets: Promise<TaskSets> | undefined
  return { settings, policy, algorithm, sets: () => (sets ??= taskSets(settings)) }
}

/** A training that this process has opened before, as it was configured then. */
export interface OpenedTraining {
  readonly id: string
  readonly config: RunConfig
}

/** A training with a name that is given to it, new or not, as part of a sweep. */
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
  /** The learner, if it chooses itself what to learn from. */
  readonly wanting: WantingLearner | undefined
  readonly versions: Versions
  readonly updates: Updates
  readonly evaluations: Evaluations
  readonly observer: TrainingObserver
  readonly sinks: OpenSinks
  readonly control: RunControl
  readonly around: Surroundings | undefined
}

/** Opens a training: new, or after an interruption. */
export async function openParts(
  checked: CheckedOptions,
  named: OpenedTraining | SweptTraining | undefined,
): Promise<TrainingParts> {
  const { settings: given, policy, algorithm } = checked
  const around = surroundings()
  const config = named ? namedConfig(named) : around ? around.configure(given.run) : given.run
  const settings = withTyped(given, config)
  const resolved = resolveConfig(config)
  const identity = identify(resolved)
  const sets = await checked.sets()
  const wanting = wantingLearner(settings)
  const about = wanting && learnerTraining(settings, policy, sets, config)
  const stored = storedSettings(settings, algorithm, policy, sets, about && wanting.prepare?.(about))
  const record = await openRecord(identity, resolved, settings, policy, stored)
  let opened: Pick<TrainingParts, 'trainer' | 'observer' | 'sinks' | 'served'> | undefined
  try {
    refuseOtherSettings(record.id, record.config, stored)
    const { history } = record
    const file = identity.place?.path
    const watch = observeTraining(settings, around)
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
    const typedSinks = (around?.training?.log ?? []).map(sinkOf)
    const sinkAbout = { trainingId: record.id, config: stored }
    const sinks = openSinks([...settings.sinks, ...typedSinks], sinkAbout, (line) => shown.notice(line))
    const observer = logged(shown, sinks, history.updates.length)
    if (isOtherCode(record.config, stored))
      observer.notice(`the code of agent '${settings.agent.name}' has changed since the training was begun`)
    const { runId: _, resume: __, progress: ___, ...runConfig } = config
    const served = new ServedVersions(policy, (line) => observer.notice(line))
    const runs = new TrainingRuns(settings.agent, { ...runConfig, store: file ?? false }, served, (runId) => ({
      response: ({ restored }) => observer.episode(runId, restored === true),
      notice: (line) => observer.notice(line),
    }))
    const notice = (line: string) => observer.notice(line)
    const trainer = about
      ? new GroupTrainer({ learner: wanting, seed: settings.seed, training: { ...about, notice }, runs })
      : new LearningTrainer(settings, algorithm, ({ message }) =>
          notice(`${message}; it is started again with its last state`),
        )
    opened = { trainer, observer, sinks, served }
    const last = history.updates.at(-1)
    // It may have been killed before it could be told.
    if (last) tellUpdate(sinks, last)
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
    const shared = { config, settings, algorithm, sets, record, runs, trainer, versions, sampler, observer }
    const updates = new Updates(shared)
    const evaluations = new Evaluations(shared)
    // It may have been killed before that.
    if (last) await updates.thin(last.number)
    around?.started(control)
    return { ...shared, served, wanting, updates, evaluations, sinks, control, around }
  } catch (error) {
    await opened?.trainer.close()
    await opened?.served.close()
    await opened?.sinks.close()
    try {
      if (ManyworldsError.is(error) && error.code === 'TRAINING_CHANGED') record.leave()
      else record.close('failed', wordsOf(error).message)
    } catch {
      // On a full disk: what went wrong first matters more.
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

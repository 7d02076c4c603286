import type { BlobSource } from '../blobs.ts'
import { ManyworldsError } from '../errors.ts'
import { Budget } from '../executor/budget.ts'
import type { Dispatcher } from '../executor/dispatcher.ts'
import type { Run, RunOptions, RunSink } from '../executor/run.ts'
import { DIRECT, MODEL, MODEL_OBJECT } from '../models/protocol.ts'
import { modelSecrets } from '../models/secrets.ts'
import type { ObserveRun } from '../progress/observer.ts'
import { ONCE } from '../protocol/messages.ts'
import { redactorOf } from '../redaction/config.ts'
import type { Redactor } from '../redaction/redactor.ts'
import { ALL_WORKERS } from '../run-config.ts'
import type { ResolvedConfig } from '../run-config-schema.ts'
import type { RecordedRun, RecordedRunOptions } from '../store/recorded-run.ts'
import { counted } from '../text/quantities.ts'
import { say } from '../text/say.ts'
import { totalUsage, type Usage } from '../trajectory/usage.ts'
import { Budgeted } from './budgeted.ts'
import { checkedTasks } from './checked-tasks.ts'
import { Grading } from './grading.ts'
import { Observation } from './observation.ts'
import { openModels, servicesOf } from './open-models.ts'
import { runChain } from './run-chain.ts'
import { type RunControl, type RunHost, runHost } from './run-host.ts'
import { identify, type RunIdentity } from './run-identity.ts'
import { refuseOtherSample } from './sampled-tasks.ts'
import type { Tasks } from './source-of.ts'
import { stored, withoutSecrets } from './stored-config.ts'
import { hashesOf, userBlobs } from './user-blobs.ts'

/** Opens a run on an executor, with its file (unless it has none) and its observers. */
export async function openRun(
  dispatcher: Dispatcher,
  config: ResolvedConfig,
  given: Tasks,
  sink: RunSink,
  carrySteps: boolean,
  host: RunHost | undefined = runHost(),
): Promise<Run> {
  const identity = identify(config)
  const redactor = redactorOf(config.redact, modelSecrets(config.models))
  const tasks = checkedTasks(given, config, redactor)
  const { sample } = tasks
  if (config.limit !== undefined && sample === undefined)
    throw new ManyworldsError(
      'CONFIG_INVALID',
      '`limit` needs all tasks at once: call Runners.runTask or Runners.streamTask, not an executor',
    )
  await refuseOtherSample(identity, config)
  const { runId, place } = identity
  const path = place?.path
  const observation = new Observation(redactor)
  let run: Run | undefined
  let early: Error | undefined
  const failed = (error: Error) => {
    if (run) dispatcher.failRun(run, error)
    else early = error
  }
  observation.failed = failed
  const blobs = userBlobs(config.blobs)
  const models = await openModels(config, failed)
  let grading: Grading | undefined
  const recorded = await record(identity, config, tasks, blobs, redactor, observation, host?.command, (error) => {
    grading?.abandon()
    failed(error)
  }).catch((error: unknown) => {
    models?.models.close()
    throw error
  })
  const running = () => (run ? dispatcher.running(run) + grading!.pending : 0)
  const earlier = recorded?.spent() ?? {}
  const usage = () => totalUsage([{ usage: earlier }, { usage: run?.usage }])
  let stopped = false
  const stop = (graceMs: number) => {
    stopped = true
    dispatcher.drainRun(run!, graceMs)
  }
  const control: RunControl = { runId, file: path, running, stop }
  const { engineName, workerNum, concurrency } = config
  observation.begin(await observers(config, host?.observe, observation), {
    runId,
    file: path,
    total: tasks.all?.length,
    sampledFrom: sample?.of,
    engineName,
    workerNum: workerNum === ALL_WORKERS ? undefined : workerNum,
    concurrency,
    resumed: recorded?.resumed ?? false,
    running,
    usage,
    stopping: () => run?.stopping !== undefined,
    models: models?.models,
  })

  const { timeoutMs, maxAttempts, retryIf, backoffMs, backoffMaxMs, deadlineMs, signal, seed, showLogs, speculate } =
    config
  const options: RunOptions = {
    ...{
      runId,
      seed,
      timeoutMs,
      maxAttempts,
      retryIf,
      backoffMs,
      backoffMaxMs,
      deadlineMs,
      signal,
      showLogs,
      speculate,
    },
    keepSteps: carrySteps || recorded === undefined,
    recorded: recorded !== undefined,
    services: servicesOf(
      config,
      models?.services(recorded?.cache, redactor, (line) => observation.notice(line)),
    ),
    budget: budgetOf(config, earlier),
    blobs,
    redactor,
  }
  grading = new Grading({
    ...{ dispatcher, options, gradeTimeoutMs: config.gradeTimeoutMs, grader: config.grade },
    store: recorded && ((...grade) => recorded.recording.grade(...grade)),
    fail: failed,
    spend: (usage, index) => dispatcher.spend(run!, usage, index),
    wake: () => dispatcher.wake(run!),
  })
  const end = async (failure: Error | undefined, ended: Run) => {
    // The last responses are graded after their commit.
    await recorded?.flush()
    const ungraded = await grading!.finish()
    const error = failure ?? ungraded ?? observation.thrown
    if (error) ended.stopping = 'failed'
    else if (ended.stopping === undefined) Object.assign(ended, grading!.stopped)
    const { stopping, unavailable } = ended
    const interrupted = stopping !== 'failed' && (stopping ?? unavailable) !== undefined
    const how = error ? 'failed' : interrupted ? 'interrupted' : 'finished'
    const why = error ? String(error) : whyStopped(ended, redactor)
    const problem = await recorded?.close({ how, error: why }).catch((cause: Error) => cause)
    const reason = redactedFailure(error ?? problem ?? undefined, redactor)
    models?.models.close()
    if (ended.repeatedCalls > 0) observation.notice(repeated(ended.repeatedCalls))
    if (redactor && redactor.skipped.size > 0) observation.notice(notStored(redactor.skipped))
    observation.end({ error: reason, interrupted, hiddenLines: ended.hiddenLines })
    await observation.settled()
    if (!host?.ended(control)) sink.end(reason ?? observation.thrown, ended)
  }
  const chain = runChain(tasks.source, sink, {
    ...{ recorded, grading, observation, stopped: host && (() => stopped) },
    budgeted: options.budget && new Budgeted(options.budget, () => dispatcher.wake(run!)),
    wake: () => dispatcher.wake(run!),
  })
  const ending = { ...chain.sink, end: (error: Error | undefined, ended: Run) => void end(error, ended) }
  run = dispatcher.open(options, chain.source, ending, chain.recorder)
  run.onStop = (graceMs) => grading!.stop(graceMs)
  host?.started(control)
  if (early) dispatcher.failRun(run, early)
  return run
}

const MODEL_SERVICES: readonly string[] = [MODEL, MODEL_OBJECT, DIRECT]

/** `skipped`: how many answers, by service. */
function notStored(skipped: ReadonlyMap<string, number>): string {
  const counts: Record<string, number> = { 'model answer': 0, 'service answer': 0, '`ctx.once` result': 0 }
  for (const [service, count] of skipped)
    counts[
      MODEL_SERVICES.includes(service) ? 'model answer' : service === ONCE ? '`ctx.once` result' : 'service answer'
    ]! += count
  const named = Object.entries(counts).filter(([, count]) => count > 0)
  const are = named.length === 1 && named[0]![1] === 1 ? 'was' : 'were'
  return `${named.map(([noun, count]) => counted(count, noun)).join(' and ')} ${are} not stored, because the answer or its request contains secrets; a resumed run asks again`
}

/** Our errors may quote a worker's stderr, which may contain secrets. */
function redactedFailure(error: Error | undefined, redactor: Redactor | undefined): Error | undefined {
  if (redactor === undefined || !ManyworldsError.is(error)) return error
  const { message, stack } = error
  error.message = redactor.text(message)
  if (stack !== undefined) error.stack = redactor.text(stack)
  return error
}

const repeated = (calls: number) =>
  `${counted(calls, 'model call')} ${calls === 1 ? 'was' : 'were'} made again: a process died before the answer was stored`

function whyStopped({ stopping, aborted, options, unavailable }: Run, redactor: Redactor | undefined): string | null {
  if (stopping === 'budget') return `it reached its budget (${options.budget})`
  if (stopping === 'deadline') return `it reached its deadline (deadlineMs: ${options.deadlineMs})`
  if (stopping === undefined && unavailable) return redactor?.text(unavailable.message) ?? unavailable.message
  return aborted ? `its signal was aborted${aborted.text === undefined ? '' : `: ${aborted.text}`}` : null
}

function budgetOf(limits: ResolvedConfig, earlier: Usage): Budget | undefined {
  if (limits.maxCostUsd === undefined && limits.maxTokens === undefined) return undefined
  return new Budget(limits, earlier)
}

/** Opens the run file and compares it with the given tasks. The store's code is loaded only if there is a file. */
async function record(
  { runId, place, mode, named }: RunIdentity,
  config: ResolvedConfig,
  { source, all, sample }: Tasks,
  blobs: ReadonlyMap<string, BlobSource> | undefined,
  redactor: Redactor | undefined,
  observation: Observation,
  command: RunHost['command'],
  failed: RecordedRunOptions['failed'],
): Promise<RecordedRun | undefined> {
  if (place === undefined) return undefined
  const { openRecordedRun } = await import('../store/recorded-run.ts')
  const { durability, keep, retryFailed, acceptChanges, seed, sequenceDependent } = config
  return openRecordedRun({
    ...{ runId, ...place, mode, named, durability, keep, retryFailed, acceptChanges, seed, sequenceDependent },
    ...{ source, all, failed },
    onSteps: config.onStep && ((task, attempt, steps) => observation.steps(task, attempt, steps)),
    ...stored(
      {
        ...withoutSecrets(config),
        ...(sample && { sample }),
        ...(command && { command }),
        ...(blobs && { blobs: await hashesOf(blobs) }),
      },
      redactor,
    ),
    redactor,
    grader: config.grade,
    notice: (line) => observation.notice(line),
    ended: (tasks) => observation.total(tasks),
  })
}

async function observers(
  { progress, onStep }: ResolvedConfig,
  host: ObserveRun | undefined,
  observation: Observation,
): Promise<ObserveRun[]> {
  const list = host ? [host] : []
  // If `onStep` is the only observer, notices must still be printed.
  const isAlone = list.length === 0 && progress === false
  if (onStep) list.push(() => ({ ...NOTHING, ...(isAlone && { notice: say }), step: observation.guard(onStep) }))
  if (progress === false) return list
  const { observeProgress } = await import('../progress/choose.ts')
  return [...list, observeProgress(progress === true ? true : observation.guard(progress))]
}

const nothing = () => {}
/** For an observer that looks at steps only. */
const NOTHING = { response: nothing, retry: nothing, total: nothing, notice: nothing, end: nothing }

import { existsSync, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { outcomeOf } from '../grade/outcome.ts'
import { atLeast } from '../grade/threshold.ts'
import { chooseDisplay } from '../progress/choose.ts'
import { EvaluationTally } from '../progress/evaluation-tally.ts'
import type { ObserveRun, RunObserver, RunStart } from '../progress/observer.ts'
import { summaryOnly } from '../progress/summary-only.ts'
import type { RunConfig } from '../run-config.ts'
import { shutdown } from '../runners/runners.ts'
import { surround } from '../runners/surroundings.ts'
import { listRuns } from '../store/find-run.ts'
import { RunFile } from '../store/run-file.ts'
import { defaultStore, isRunFile } from '../store/run-path.ts'
import { runArgument } from '../text/own-command.ts'
import { say } from '../text/say.ts'
import { visible } from '../text/visible.ts'
import { errorText, reportError } from './error-report.ts'
import { engineOf } from './run/engine.ts'
import { Interruption } from './run/interruption.ts'
import { modelsOf, readTypedModels } from './run/model-options.ts'
import { Naming } from './run/naming.ts'
import { nodesOf } from './run/node-options.ts'
import { takeStdout } from './run/own-stdout.ts'
import { rayOf } from './run/ray-options.ts'
import { resumeCommand } from './run/resume-command.ts'
import { sparkOf } from './run/spark-options.ts'
import type { RunArgs } from './specs/run.ts'
import { UsageError } from './usage-error.ts'

/** How long runs of a script that threw may take to end. */
const STOP_MS = 5000

/** Runs a script in this process, with options of the command line over those that the script gives. */
export async function run(args: RunArgs): Promise<number> {
  const words = process.argv.slice(2)
  const models = readTypedModels(args)
  const script = resolve(args.script)
  if (!existsSync(script) || !statSync(script).isFile()) throw new UsageError(`there is no script ${args.script}`)
  const naming = new Naming({ runId: args.runId, resume: runToResume(args), retryFailed: args.retryFailed })
  const typed = overrides(args)
  const display = displayOf(args)
  const outcome = new Outcome(args.failUnder)
  let last: RunObserver | undefined
  const interruption = new Interruption(args.grace, {
    say: (line) => (last && !args.quiet ? last.notice(line) : say(line)),
    farewell: () => sayHowToGoOn(words, outcome.stored),
    goodbye: async () => {
      if (outcome.elsewhere) await shutdown()
    },
  })
  surround({
    configure: (config) => {
      const { cls, ...script } = config
      // An engine that the script brings along would go before one that is named.
      const own = typed.engineName === undefined && cls !== undefined ? { cls } : {}
      const wanted = { ...script, ...own, ...typed }
      const places = { ...nodesOf(args, wanted), ...rayOf(args, wanted), ...sparkOf(args, wanted) }
      return { ...wanted, ...modelsOf(models, wanted), ...places, ...naming.name(config), progress: false }
    },
    observe: (start) => {
      const shown = display?.(start)
      if (shown) last = shown
      return outcome.watch(start, shown)
    },
    started: (control) => interruption.started(control),
    ended: (control) => interruption.ended(control),
  })
  process.argv = [process.argv[0]!, script, ...args.scriptArgs]
  process.on('exit', (code) => {
    if (code === 0 && outcome.runs === 0 && !args.quiet && !interruption.interrupted) sayThatNothingRan(args.script)
    // A script that leaves by itself, with tasks that did not succeed, or were not done.
    const { failed, leftHalfDone } = outcome
    outcome.sayErrors()
    if (leftHalfDone && !interruption.interrupted) sayHowToGoOn(words, outcome.stored)
    if ((failed || leftHalfDone) && !process.exitCode) process.exitCode = 1
  })
  return execute(script, outcome, interruption)
}

/** The script is done when nothing of it is left to be waited for, as with `node script`. */
async function execute(script: string, outcome: Outcome, interruption: Interruption): Promise<number> {
  const idle = new Promise<'idle'>((done) => process.once('beforeExit', () => done('idle')))
  try {
    const loaded = await Promise.race([import(pathToFileURL(script).href), idle])
    if (loaded === 'idle') {
      say(`${script} waits for something that will never come`)
      return 1
    }
    await idle
    // Nodes that have joined are told that they may go; otherwise they would wait for us to come back.
    if (outcome.elsewhere) await shutdown()
  } catch (error) {
    // What it had going on is cancelled and written down: a loop over responses that throws leaves its run so.
    await interruption.stopAll(STOP_MS)
    outcome.said(error)
    return reportError(error, undefined)
  }
  const code = process.exitCode
  return typeof code === 'number' && code !== 0 ? code : outcome.failed ? 1 : 0
}

/** Whether all went well, over all runs of the script. */
class Outcome {
  failed = false
  runs = 0
  /** Some of it ran on other machines. */
  elsewhere = false
  /** The first run that has a file, as it is named on the command line. */
  stored: string | undefined
  /** Errors that ended runs, and that the script has not let through: by the run's id. */
  readonly #errors = new Map<unknown, string>()
  /** Runs that have not come to their end; each can tell whether something of it is still to be done. */
  readonly #open = new Set<() => boolean>()
  readonly #failUnder: number | undefined

  /** `failUnder`: the share of tasks that must be solved; whether they succeed is then no matter. */
  constructor(failUnder: number | undefined) {
    this.#failUnder = failUnder
  }

  /** The script leaves, and a run was not done. An executor that has nothing to do is. */
  get leftHalfDone(): boolean {
    return [...this.#open].some((isBusy) => isBusy())
  }

  /** This error is being reported, and what caused it with it. */
  said(error: unknown): void {
    for (let cause = error; cause instanceof Error; cause = cause.cause) this.#errors.delete(cause)
  }

  /** A script may catch what ended a run, and keep it to itself. */
  sayErrors(): void {
    for (const [error, runId] of this.#errors)
      process.stderr.write(`manyworlds: run ${visible(runId)} failed: ${errorText(error)}\n`)
    this.#errors.clear()
  }

  watch(start: RunStart, shown: RunObserver | undefined): RunObserver {
    let { total } = start
    let seen = 0
    const evaluation = this.#failUnder === undefined ? undefined : new EvaluationTally()
    const isBusy = () => (total === undefined ? start.running() > 0 : seen < total)
    this.runs++
    if (start.engineName !== 'local') this.elsewhere = true
    this.#open.add(isBusy)
    if (start.file !== undefined) this.stored ??= runArgument(start.runId, start.file)
    return {
      response: (response) => {
        seen++
        evaluation?.add(outcomeOf(response))
        if (!response.success && !evaluation) this.failed = true
        shown?.response(response)
      },
      retry: (...retry) => shown?.retry(...retry),
      total: (tasks) => {
        total = tasks
        shown?.total(tasks)
      },
      notice: (line) => (shown ? shown.notice(line) : say(line)),
      end: (ending) => {
        this.#open.delete(isBusy)
        if (ending.error || ending.interrupted) this.failed = true
        if (ending.error) this.#errors.set(ending.error, start.runId)
        shown?.end(ending)
        if (evaluation) this.#judge(evaluation, start.runId)
      },
    }
  }

  /** Whether enough tasks are solved, in plain words. */
  #judge(evaluation: EvaluationTally, runId: string): void {
    const summary = evaluation.summary()
    if (!summary) {
      this.failed = true
      return say(
        `--fail-under: nothing of run ${visible(runId)} is graded; give tasks or the run a grader with \`grade\``,
      )
    }
    const { passed, lines } = atLeast(summary, this.#failUnder!)
    if (!passed) this.failed = true
    for (const line of lines) say(visible(line))
  }
}

function displayOf({ json, quiet, noProgress }: RunArgs): ObserveRun | undefined {
  if (json) return chooseDisplay({ json, quiet, progress: true, stream: takeStdout() })
  if (quiet) return undefined
  if (noProgress) return summaryOnly(process.stderr)
  return chooseDisplay({ json, quiet, progress: true, stream: process.stderr })
}

/** The run behind what was typed; that there is one is seen before the script begins. */
function runToResume({ resume, runId, store }: RunArgs): { runId: string; file: string } | 'auto' | undefined {
  if (resume === undefined) return undefined
  if (resume === 'auto') {
    if (runId === undefined)
      throw new UsageError('--resume auto needs --run-id: the name under which the run is found again')
    return resume
  }
  if (store === undefined && defaultStore() === false)
    throw new UsageError('--resume needs the run file, and MANYWORLDS_STORE is off')
  const name = store !== undefined && isRunFile(store) ? store : resume
  using file = RunFile.open(name, store === undefined ? {} : { store })
  if (runId !== undefined && runId !== file.runId)
    throw new UsageError(`--resume names run '${file.runId}' and --run-id says '${runId}'; give one of them`)
  refuseLaterRun(file)
  return { runId: file.runId, file: file.path }
}

/** A script is run from its beginning: of several runs of one script, the first is named. */
function refuseLaterRun(run: RunFile): void {
  const [, first, place] = /^(.+)-(\d+)$/.exec(run.runId) ?? []
  const found = first === undefined ? undefined : listRuns(dirname(run.path)).find(({ runId }) => runId === first)
  if (found === undefined) return
  using begun = RunFile.at(found)
  if (begun.runId === first && begun.overview().script === run.overview().script)
    throw new UsageError(
      `'${run.runId}' is run ${place} of its script, which is run from its beginning: --resume ${first}`,
    )
}

/** The options of the command line as a run configuration: those that were given. */
function overrides(args: RunArgs): RunConfig {
  const given = {
    engineName: engineOf(args),
    workerNum: args.workers,
    inLocal: inLocalOf(args),
    concurrency: args.concurrency,
    timeoutMs: args.timeout,
    maxAttempts: args.maxAttempts,
    deadlineMs: args.deadline,
    maxCostUsd: args.maxCost,
    maxTokens: args.maxTokens,
    rollouts: args.rollouts,
    seed: args.seed,
    limit: args.limit,
    sampleSeed: args.sampleSeed,
    store: args.noStore ? (false as const) : args.store,
    durability: args.durability,
    cache: args.replay ? ('replay' as const) : args.cache || undefined,
    showLogs: args.showLogs || undefined,
    modelsFile: args.models,
  }
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)) as RunConfig
}

/** Who names a cluster wants none that is started here, although the script may say so. */
function inLocalOf({ inLocal, rayAddress, sparkRemote }: RunArgs): boolean | undefined {
  if (inLocal) return true
  return rayAddress === undefined && sparkRemote === undefined ? undefined : false
}

function sayThatNothingRan(script: string): void {
  say(`${script} made no run. Here it is imported: code that is guarded by import.meta.main does not run`)
}

function sayHowToGoOn(words: readonly string[], run: string | undefined): void {
  const text =
    run === undefined
      ? 'interrupted; there is no run file, and so nothing to resume'
      : `interrupted; what is finished is kept. Go on with:\n  ${resumeCommand(words, run)}`
  say(text)
}

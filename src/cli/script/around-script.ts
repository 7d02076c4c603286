import { existsSync, statSync } from 'node:fs'
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { ObserveRun } from '../../progress/observer.ts'
import type { RunConfig } from '../../run-config.ts'
import { setRunHost, type TrainingOverrides } from '../../runners/run-host.ts'
import { shutdown } from '../../runners/runners.ts'
import { say } from '../../text/say.ts'
import type { ObserveTraining } from '../../train/pipeline/observer.ts'
import { reportError } from '../frame/error-report.ts'
import { UsageError } from '../frame/usage-error.ts'
import { Interruption } from './interruption.ts'
import { Outcome } from './outcome.ts'
import { resumeCommand, storedCommand } from './resume-command.ts'
import { uncaughtError } from './uncaught.ts'
import { ViewerBeside } from './viewer-beside.ts'

/** How long the runs of a script that threw may take to end. */
const STOP_MS = 5000

/** How a command runs a script. */
export interface ScriptCall {
  /** The name of the command. */
  readonly name: string
  readonly args: {
    readonly script: string
    readonly scriptArgs: readonly string[]
    readonly quiet: boolean
    readonly json: boolean
    readonly noProgress: boolean
    readonly grace: number
    readonly failUnder?: number | undefined
    readonly maxUngraded?: number | undefined
    readonly view: boolean
  }
  /** Overrides the options of the script with those of the command line. */
  readonly configure: (config: RunConfig) => RunConfig
  readonly training?: TrainingOverrides
  readonly display: ObserveRun | undefined
  readonly displayTraining: ObserveTraining | undefined
  /** Called when the script has finished by itself. */
  readonly afterwards?: (exported: object, outcome: Outcome) => Promise<void>
  /**
   * Called when the script exits with code 0. Returns the exit code, and reports if the script did nothing that the
   * command is for.
   */
  readonly nothingDone: (outcome: Outcome) => number
}

/** The path of the script. Throws if the file does not exist. */
export function scriptOf(typed: string): string {
  const script = resolve(typed)
  if (!existsSync(script) || !statSync(script).isFile()) throw new UsageError(`script not found: ${typed}`)
  return script
}

/** Runs a script in this process. Options of the command line override those of the script. */
export async function aroundScript(call: ScriptCall): Promise<number> {
  const { args, configure, training, display, displayTraining } = call
  const words = process.argv.slice(2)
  const script = scriptOf(args.script)
  const outcome = new Outcome(args.failUnder, args.maxUngraded)
  let last: { notice?(line: string): void } | undefined
  const tell = (line: string) => (last?.notice && !args.quiet ? last.notice(line) : say(line))
  const viewer = args.view ? new ViewerBeside(tell) : undefined
  const interruption = new Interruption(args.grace, {
    say: tell,
    farewell: () => sayHowToGoOn('interrupted', words, outcome.stored),
    goodbye: async () => {
      if (outcome.remote) await shutdown()
    },
  })
  const shown = <Shown extends NonNullable<typeof last>>(observer: Shown | undefined) => {
    if (observer) last = observer
    return observer
  }
  setRunHost({
    configure,
    command: storedCommand(words),
    ...(training && { training }),
    observe: (start) => outcome.watch(start, shown(display?.(start))),
    observeTraining: (start) => {
      const observer = outcome.watchTraining(start, shown(displayTraining?.(start)))
      viewer?.training(start.id, start.file)
      return observer
    },
    sweep: () => {
      outcome.sweeps++
    },
    ...(tellsProgress(args) && { dataStep: say }),
    started: (control) => {
      interruption.started(control)
      viewer?.run(control.runId, control.file)
    },
    ended: (control) => interruption.ended(control),
  })
  process.argv = [process.argv[0]!, script, ...args.scriptArgs]
  process.on('exit', (code) => {
    if (code === 0 && !interruption.interrupted) process.exitCode = call.nothingDone(outcome)
    // The script exits by itself, possibly with failed or unfinished tasks.
    const { failed, leftHalfDone, stopped } = outcome
    outcome.sayErrors()
    if ((leftHalfDone || stopped) && !interruption.interrupted) {
      const why = leftHalfDone ? 'the script exited before its run was done' : 'stopped before everything was done'
      sayHowToGoOn(why, words, outcome.stored)
    }
    if ((failed || leftHalfDone) && !process.exitCode) process.exitCode = 1
  })
  const code = await execute(script, call, outcome, interruption)
  interruption.end()
  await viewer?.stay()
  return code
}

const tellsProgress = ({ quiet, json, noProgress }: ScriptCall['args']) => !quiet && !json && !noProgress

/** As with `node script`, the script ends when its event loop is empty. */
async function execute(
  script: string,
  { name, afterwards }: ScriptCall,
  outcome: Outcome,
  interruption: Interruption,
): Promise<number> {
  const idle = new Promise<'idle'>((done) => process.once('beforeExit', () => done('idle')))
  const uncaught = uncaughtError()
  try {
    const loaded = await Promise.race([import(pathToFileURL(script).href), idle, uncaught])
    if (loaded === 'idle') {
      say(`${script}: a top-level await never settled and the event loop is empty`)
      return 1
    }
    await Promise.race([idle, uncaught])
    await Promise.race([afterwards?.(loaded as object, outcome), uncaught])
    // Tell nodes that have joined to leave; otherwise they would wait for this driver to reconnect.
    if (outcome.remote) await shutdown()
  } catch (error) {
    // Cancel and record the runs in progress: a loop over responses that throws leaves its run open.
    await interruption.stopAll(STOP_MS)
    outcome.said(error)
    return reportError(error, error instanceof UsageError ? name : undefined)
  }
  const code = process.exitCode
  return typeof code === 'number' && code !== 0 ? code : outcome.failed ? 1 : 0
}

function sayHowToGoOn(why: string, words: readonly string[], run: string | undefined): void {
  const text =
    run === undefined
      ? `${why}; the run has no file, so it cannot be resumed`
      : `${why}; finished tasks are kept. Resume with:\n  ${resumeCommand(words, run)}`
  say(text)
}

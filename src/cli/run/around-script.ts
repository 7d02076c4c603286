import { existsSync, statSync } from 'node:fs'
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { ObserveRun } from '../../progress/observer.ts'
import type { RunConfig } from '../../run-config.ts'
import { shutdown } from '../../runners/runners.ts'
import { surround, type TrainingOverrides } from '../../runners/surroundings.ts'
import { say } from '../../text/say.ts'
import type { ObserveTraining } from '../../train/pipeline/observer.ts'
import { reportError } from '../error-report.ts'
import { UsageError } from '../usage-error.ts'
import { Interruption } from './interruption.ts'
import { Outcome } from './outcome.ts'
import { resumeCommand } from './resume-command.ts'

/** How long runs of a script that threw may take to end. */
const STOP_MS = 5000

/** What a command does with a script. */
export interface ScriptCall {
  /** Of the command. */
  readonly name: string
  readonly args: {
    readonly script: string
    readonly scriptArgs: readonly string[]
    readonly quiet: boolean
    readonly grace: number
    readonly failUnder?: number | undefined
  }
  /** Options of the command line over those of the script. */
  readonly configure: (config: RunConfig) => RunConfig
  readonly training?: TrainingOverrides
  readonly display: ObserveRun | undefined
  readonly displayTraining: ObserveTraining | undefined
  /** When the script has done all that it does by itself. */
  readonly afterwards?: (exported: object, outcome: Outcome) => Promise<void>
  /** The script leaves by itself, and all went well: says if that was not what was wanted. The exit code. */
  readonly nothingDone: (outcome: Outcome) => number
}

/** That there is such a script is seen before anything else. */
export function scriptOf(typed: string): string {
  const script = resolve(typed)
  if (!existsSync(script) || !statSync(script).isFile()) throw new UsageError(`there is no script ${typed}`)
  return script
}

/** Runs a script in this process, with options of the command line over those that the script gives. */
export async function aroundScript(call: ScriptCall): Promise<number> {
  const { args, configure, training, display, displayTraining } = call
  const words = process.argv.slice(2)
  const script = scriptOf(args.script)
  const outcome = new Outcome(args.failUnder)
  let last: { notice?(line: string): void } | undefined
  const interruption = new Interruption(args.grace, {
    say: (line) => (last?.notice && !args.quiet ? last.notice(line) : say(line)),
    farewell: () => sayHowToGoOn(words, outcome.stored),
    goodbye: async () => {
      if (outcome.elsewhere) await shutdown()
    },
  })
  const shown = <Shown extends NonNullable<typeof last>>(observer: Shown | undefined) => {
    if (observer) last = observer
    return observer
  }
  surround({
    configure,
    ...(training && { training }),
    observe: (start) => outcome.watch(start, shown(display?.(start))),
    observeTraining: (start) => outcome.watchTraining(start, shown(displayTraining?.(start))),
    sweep: () => {
      outcome.sweeps++
    },
    started: (control) => interruption.started(control),
    ended: (control) => interruption.ended(control),
  })
  process.argv = [process.argv[0]!, script, ...args.scriptArgs]
  process.on('exit', (code) => {
    if (code === 0 && !interruption.interrupted) process.exitCode = call.nothingDone(outcome)
    // A script that leaves by itself, with tasks that did not succeed, or were not done.
    const { failed, leftHalfDone } = outcome
    outcome.sayErrors()
    if (leftHalfDone && !interruption.interrupted) sayHowToGoOn(words, outcome.stored)
    if ((failed || leftHalfDone) && !process.exitCode) process.exitCode = 1
  })
  return execute(script, call, outcome, interruption)
}

/** The script is done when nothing of it is left to be waited for, as with `node script`. */
async function execute(
  script: string,
  { name, afterwards }: ScriptCall,
  outcome: Outcome,
  interruption: Interruption,
): Promise<number> {
  const idle = new Promise<'idle'>((done) => process.once('beforeExit', () => done('idle')))
  try {
    const loaded = await Promise.race([import(pathToFileURL(script).href), idle])
    if (loaded === 'idle') {
      say(`${script} waits for something that will never come`)
      return 1
    }
    await idle
    await afterwards?.(loaded as object, outcome)
    // Nodes that have joined are told that they may go; otherwise they would wait for us to come back.
    if (outcome.elsewhere) await shutdown()
  } catch (error) {
    // What it had going on is cancelled and written down: a loop over responses that throws leaves its run so.
    await interruption.stopAll(STOP_MS)
    outcome.said(error)
    return reportError(error, error instanceof UsageError ? name : undefined)
  }
  const code = process.exitCode
  return typeof code === 'number' && code !== 0 ? code : outcome.failed ? 1 : 0
}

function sayHowToGoOn(words: readonly string[], run: string | undefined): void {
  const text =
    run === undefined
      ? 'interrupted; there is no run file, and so nothing to resume'
      : `interrupted; what is finished is kept. Go on with:\n  ${resumeCommand(words, run)}`
  say(text)
}

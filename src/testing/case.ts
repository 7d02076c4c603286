import type { RuntimeEngine, RuntimeEngineClass } from '../engines/engine.ts'
import type { RunConfig } from '../run-config.ts'

/** A reference to an engine: a module and the name of its export, a class or a function that makes one. */
export interface EngineReference {
  readonly module: string | URL
  readonly export: string
}

export type EngineFactory = RuntimeEngineClass | (() => RuntimeEngine)

/** The context of a case. */
export interface Kit {
  /** A configuration on the engine under test; all cases share one engine. */
  conf(config?: RunConfig): RunConfig
  /** Where another process can import the engine, for cases in which the driver dies. */
  readonly reference: EngineReference | undefined
  /** Whether the side threads of its workers are served while the event loop is blocked. */
  readonly hasSideWire: boolean
  /** Whether its workers can connect to the loopback address of this machine. */
  readonly sharesLoopback: boolean
  /** Whether its workers are processes of their own. */
  readonly hasProcesses: boolean
}

export interface KitOptions {
  /** False: its workers have no side wire, so requests of the side thread wait for the event loop. Default true. */
  readonly sideWire?: boolean
  /** False: its workers cannot connect to 127.0.0.1 of the test. Default true. */
  readonly loopback?: boolean
  /** False: its workers run in the driver's process. Cases in which a worker dies or blocks its event loop are skipped. Default true. */
  readonly processes?: boolean
  /** The parts of the kit to run. Default: all. An engine conforms if it passes all of them. */
  readonly parts?: readonly KitPart[]
}

/** What the cases of a part are about. */
export type KitPart =
  | 'answers'
  | 'control'
  | 'crashes'
  | 'services'
  | 'keptAnswers'
  | 'models'
  | 'blobs'
  | 'experience'
  | 'volume'
  | 'links'
  | 'end'

export interface Case {
  /** A guarantee, as a user would notice it. */
  readonly name: string
  /** Ends a worker, blocks its event loop, or looks at its process: for engines whose workers are processes of their own. */
  readonly needsProcess?: true
  run(kit: Kit): Promise<void>
}

/** Skips a case that starts its own driver, which must import the engine. Fails under CI. */
export function skipWithoutReference(which: string): void {
  const reason = `give testEngine the engine by reference ({ module, export }) for the case ${which}`
  if (process.env.CI === 'true') throw new Error(reason)
  process.stderr.write(`manyworlds kit: SKIPPED: ${reason}\n`)
}

import type { RuntimeEngine, RuntimeEngineClass } from '../engines/engine.ts'
import type { RunConfig } from '../run-config.ts'

/** An engine by reference: a module and the name of what it exports, a class or a function that makes one. */
export interface EngineReference {
  readonly module: string | URL
  readonly export: string
}

export type EngineFactory = RuntimeEngineClass | (() => RuntimeEngine)

/** What a case is given. */
export interface Kit {
  /** A configuration on the engine under test; all cases share one engine. */
  conf(config?: RunConfig): RunConfig
  /** Where another process can get the engine from, for cases in which the driver dies. */
  readonly reference: EngineReference | undefined
  /** Whether its workers are served while their event loop is blocked. */
  readonly hasSideWire: boolean
  /** Whether its workers can reach what listens on the loopback address of this machine. */
  readonly sharesLoopback: boolean
}

export interface KitOptions {
  /** False: its workers have no wire for their side thread, which then waits for their event loop. Default true. */
  readonly sideWire?: boolean
  /** False: its workers cannot reach what listens on 127.0.0.1 of the test. Default true. */
  readonly loopback?: boolean
}

export interface Case {
  /** A promise of the design, as a user would notice it. */
  readonly name: string
  run(kit: Kit): Promise<void>
}

/** A case starts a driver of its own, which has to import the engine. */
export function skipWithoutReference(which: string): void {
  const reason = `give testEngine the engine by reference ({ module, export }) for the case ${which}`
  if (process.env.CI === 'true') throw new Error(reason)
  process.stderr.write(`manyworlds kit: SKIPPED: ${reason}\n`)
}

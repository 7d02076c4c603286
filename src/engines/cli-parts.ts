import type { Check } from '../cli/commands/doctor/check.ts'
import type { Made } from '../cli/commands/setup/make.ts'
import type { SetupArgs } from '../cli/commands/setup/spec.ts'
import type { Example, Option } from '../cli/frame/command.ts'
import type { TypedPlace } from './definition.ts'

/** What `manyworlds doctor` does for an engine. */
export interface EngineDoctor {
  /** What the engine needs on this machine, for the help page. */
  readonly about?: string
  /** What is asked beyond this machine, and when, for the help page. */
  readonly asks?: string
  readonly options?: Readonly<Record<string, Option>>
  /** The option that names the address to ask. A token or certificate typed beside it is sent only there, not to other engines. */
  readonly owns?: string
  readonly example?: Example
  /** Headings of the report, each for the checks with this `concerns`. */
  readonly sections: Readonly<Record<string, string>>
  check(given: TypedPlace): Promise<readonly Check[]>
  /** One sentence for the end of the report. */
  conclude?(checks: readonly Check[]): string | undefined
}

/** What `manyworlds setup NAME` does for an engine. */
export interface EngineSetup {
  /** Its name: "Ray". */
  readonly title: string
  /** The purpose, for the help page: "for --engine ray". */
  readonly for: string
  /** A paragraph of the help page. */
  readonly about?: string
  /** An example of a version to type. */
  readonly version: string
  /** Options of `setup` that it takes. */
  readonly takes: readonly ('version' | 'address' | 'tokenFile')[]
  /** Advice for a user who gives it an option that only others take. */
  readonly instead?: string
  readonly examples: readonly Example[]
  run(args: SetupArgs): Promise<Made>
}

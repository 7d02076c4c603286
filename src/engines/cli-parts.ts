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
  /** The option that names what is asked. A token or certificate typed beside it is for that, and for no other engine. */
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
  /** What it is called: "Ray". */
  readonly title: string
  /** Why one would, for the help page: "for --engine ray". */
  readonly for: string
  /** A paragraph of the help page. */
  readonly about?: string
  /** A version as it is typed. */
  readonly version: string
  /** Options of `setup` that it takes. */
  readonly takes: readonly ('version' | 'address' | 'tokenFile')[]
  /** What to say to someone who gives it an option of others. */
  readonly instead?: string
  readonly examples: readonly Example[]
  run(args: SetupArgs): Promise<Made>
}

import type * as z from 'zod/mini'
import type { Example, Option } from '../cli/frame/command.ts'
import type { PeerGroup } from '../optional-peers.ts'
import type { RunConfig } from '../run-config.ts'
import type { EngineDoctor, EngineSetup } from './cli-parts.ts'
import type { RuntimeEngine } from './engine.ts'

/**
 * All that this package knows about one of its engines. `all.ts` lists the definitions; the schema of a run configuration, what
 * is stored of it, the command line, `doctor` and `setup` are derived from that list.
 *
 * A definition is loaded by every driver and for every help page. So it is light: the schema is a function that is given
 * zod, and what only one command needs is imported when it is called.
 */
export interface EngineDefinition<
  Name extends string = string,
  Options extends object = never,
  CliOptions extends Readonly<Record<string, Option>> = Readonly<Record<never, never>>,
> {
  /** `engineName` and `--engine`. Its options, if it has any, are the key of that name in a RunConfig. */
  readonly name: Name
  /** Where its workers are, for the help of `--engine`: "on this machine". */
  readonly where: string
  /** Its options: the shape of an object schema. */
  readonly options?: (kit: SchemaKit) => OptionsShape<Options>
  /**
   * Which of its options may be stored in the run file: those that are named here, as they are or changed by a function. A
   * new option is not stored until someone has decided that it is no secret.
   */
  readonly stored?: { readonly [Key in keyof Options]?: true | ((value: NonNullable<Options[Key]>) => unknown) }
  /** Optional npm packages that it needs. */
  readonly packages?: readonly PeerGroup[]
  /** It can start a small cluster on this machine, with `inLocal`. */
  readonly startsLocally?: true
  /** Its workers share this machine with the driver, so that they reach what listens here. Clusters: only with `inLocal`. */
  readonly onThisMachine?: true
  /** Its workers are the driver's own process. */
  readonly inDriver?: true
  /** How many workers there are without `workerNum`: the machine's cores, as many as there is room for, or a fixed number. */
  readonly workers: 'cores' | 'all' | number
  make(config: EngineConfig<Options>): RuntimeEngine
  /** Its part of `run`, `train`, `doctor` and `setup`. */
  readonly cli?: EngineCli<CliOptions>
}

/** What an engine is made from. */
export interface EngineConfig<Options> {
  readonly options: Options | undefined
  readonly inLocal: boolean
  readonly workerNum: number | undefined
}

/** What schemas of options are made with. */
export interface SchemaKit {
  readonly z: typeof z
  /** Non-empty text. */
  readonly text: z.ZodMiniType<string, string>
  readonly words: z.ZodMiniType<string[], string[]>
  /** Milliseconds, 0 included. */
  readonly pause: z.ZodMiniType<number, number>
}

/** A schema for each option, and for nothing else. */
export type OptionsShape<Options> = {
  readonly [Key in keyof Options]-?: z.ZodMiniType<Loose<Options[Key]> | undefined>
}

/** zod reads `undefined` as a key that was left out. */
type Loose<T> = T extends readonly (infer Item)[]
  ? readonly Loose<Item>[]
  : T extends object
    ? { readonly [Key in keyof T]: Loose<T[Key]> | (Record<never, never> extends Pick<T, Key> ? undefined : never) }
    : T

export interface EngineCli<CliOptions extends Readonly<Record<string, Option>>> {
  /** The heading of its options. */
  readonly group: string
  /** Options of `run` and `train`. Typing one of them selects this engine, except those in `hints`. */
  readonly options: CliOptions
  /** Options that configure this engine but do not select it. */
  readonly hints?: readonly (keyof CliOptions & string)[]
  /** Options that name a cluster: with one of them, none is started on this machine. */
  readonly names?: readonly (keyof CliOptions & string)[]
  /** Merges typed options into the script's configuration; typed ones win. Called if the run is on this engine. */
  configure?(given: TypedPlace, config: RunConfig): RunConfig
  /** Lines for the help pages. */
  readonly examples?: { readonly run?: readonly Example[]; readonly train?: readonly Example[] }
  readonly doctor?: EngineDoctor
  readonly setup?: EngineSetup
}

/** The typed options about where workers run: those of all engines, and those that several engines share. */
export type TypedPlace = Readonly<Record<string, unknown>>

/** The typed options that concern one engine. */
export type TypedAccess<CliOptions> = {
  readonly [Key in keyof CliOptions | 'engine' | 'tokenFile' | 'tlsCa' | 'tlsCert' | 'tlsKey']?: string | undefined
}

/** Checks a definition and keeps the types of its parts. */
export const defineEngine = <
  const Name extends string,
  Options extends object = never,
  const CliOptions extends Readonly<Record<string, Option>> = Readonly<Record<never, never>>,
>(
  definition: EngineDefinition<Name, Options, CliOptions>,
): EngineDefinition<Name, Options, CliOptions> => definition

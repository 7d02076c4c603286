/**
 * Describes a command. Parsing, help and shell completion are all derived from its spec. Its body is in another file,
 * which is loaded when the command is called.
 */
export interface Spec {
  readonly name: string
  /** One line, for the list of commands. */
  readonly summary: string
  /** Further paragraphs of the help page. */
  readonly about?: readonly string[]
  /** In the order in which they are typed. The key is the name in the body's arguments. */
  readonly positionals: Readonly<Record<string, Positional>>
  /** The key is the name in the body's arguments; on the command line `maxAttempts` is `--max-attempts`. */
  readonly options: Readonly<Record<string, Option>>
  readonly examples: readonly Example[]
  /** The meaning of 0, 1, … for this command. For every command, 2 is a mistake on the command line. */
  readonly exitCodes: Readonly<Record<number, string>>
}

export interface Example {
  readonly about: string
  readonly line: string
}

/** Words that shell completion offers: files, or a list. */
export type Suggest = 'files' | (() => Promise<readonly string[]>)

export interface Positional {
  /** The placeholder in help texts: `SCRIPT`. */
  readonly value: string
  readonly description: string
  readonly optional?: boolean
  /** It may be left out if one of these options is given. */
  readonly optionalWith?: readonly string[]
  /** Accepts one or more words: the body gets an array. */
  readonly many?: boolean
  /** Everything after `--`: the body gets an array. */
  readonly afterDashes?: boolean
  readonly choices?: readonly string[]
  readonly suggest?: Suggest
}

interface OptionBase {
  readonly short?: string
  /** Another name for the same option, which users may know from another command. */
  readonly alias?: string
  readonly description: string
  /** The heading under which help lists it. */
  readonly group?: string
  /** Keys of options that it cannot be combined with. */
  readonly excludes?: readonly string[]
  /** The key of an option that must be given too. */
  readonly needs?: string
}

interface ValueOption extends OptionBase {
  /** The placeholder of the value in help texts: `N`. */
  readonly value: string
  /** The default, as a user would type it. */
  readonly default?: string
  readonly suggest?: Suggest
}

export type Option =
  | (OptionBase & { readonly type: 'flag' })
  /** `many`: the option may be repeated, and the body gets an array. */
  | (ValueOption & { readonly type: 'text'; readonly many?: boolean })
  | (ValueOption & { readonly type: 'choice'; readonly choices: readonly string[] })
  /** A whole number, 1 or more unless `min` says otherwise. */
  | (ValueOption & { readonly type: 'integer'; readonly min?: number })
  /** A number within these bounds, both included unless it must be `above` the first. */
  | (ValueOption & { readonly type: 'number'; readonly above?: number; readonly min?: number; readonly max?: number })
  /** Typed as `30s` or `1h30m`; the body gets milliseconds. */
  | (ValueOption & { readonly type: 'duration' })

type Typed<O extends Option> = O extends { type: 'choice'; choices: readonly (infer Choice)[] }
  ? Choice
  : O extends { type: 'integer' | 'number' | 'duration' }
    ? number
    : string

type OptionValue<O extends Option> = O extends { type: 'flag' }
  ? boolean
  : O extends { many: true }
    ? readonly string[]
    : Typed<O> | (O extends { default: string } ? never : undefined)

type PositionalValue<P extends Positional> = P extends { many: true } | { afterDashes: true }
  ? readonly string[]
  :
      | (P extends { choices: readonly (infer Choice)[] } ? Choice : string)
      | (P extends { optional: true } ? undefined : never)

/** The arguments of a body: every positional and every option, by its key. */
export type ArgsOf<S extends Spec> = {
  readonly [Key in keyof S['positionals']]: PositionalValue<S['positionals'][Key]>
} & {
  readonly [Key in keyof S['options']]: OptionValue<S['options'][Key]>
}

/** The body of a command. It resolves to the exit code. */
export interface Body<Args> {
  run(args: Args): Promise<number>
}

export interface Command {
  readonly spec: Spec
  load(): Promise<Body<never>>
}

/** Binds a spec to its body; the compiler checks that they fit. */
export const command = <S extends Spec>(spec: S, load: () => Promise<Body<ArgsOf<S>>>): Command => ({ spec, load })

/** Whether the option may be repeated. */
export const isMany = (option: Option): boolean => option.type === 'text' && option.many === true

/** How an option is typed: `maxAttempts` is `--max-attempts`. */
export const flagOf = (key: string): string => `--${key.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`

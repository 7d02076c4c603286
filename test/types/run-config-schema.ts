// Compiled by `npm run check`, never run: the schema of a run configuration has the keys and types of `RunConfig`.
import type * as z from 'zod/mini'
import type { EngineOptions } from '../../src/engines/names.ts'
import type { RunConfig } from '../../src/run-config.ts'
import type { schema } from '../../src/run-config-schema.ts'
import { same } from './equal.ts'

type Given = z.input<typeof schema>

same<keyof Given, keyof RunConfig>(true)
same<keyof EngineOptions, 'nodes' | 'ray' | 'spark'>(true)

/** Arrays and objects that may not be changed, as those that may: zod makes new ones. */
type Plain<T> = T extends (...args: never[]) => unknown ? T : T extends readonly (infer Item)[] ? Plain<Item>[] : T

declare const config: { [Key in keyof RunConfig]-?: Plain<NonNullable<RunConfig[Key]>> }
declare const given: { [Key in keyof Given]-?: Plain<NonNullable<Given[Key]>> }

// Whatever a RunConfig may have, the schema takes, and the other way round. Models and options of engines have types of their own.
type Own = Exclude<
  keyof RunConfig,
  keyof EngineOptions | 'models' | 'engine' | 'bundle' | 'keep' | 'services' | 'limits'
>
export const takes: Pick<typeof given, Own> = config
export const gives: Pick<typeof config, Own> = given

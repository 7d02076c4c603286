import { engineParts } from '../../engines/all-parts.ts'
import type { TypedPlace } from '../../engines/definition.ts'
import type { EngineName } from '../../run-config.ts'
import { flagOf } from '../frame/command.ts'
import { UsageError } from '../frame/usage-error.ts'

/** The typed engine. An option of an engine implies that engine. */
export function engineOf(given: TypedPlace): EngineName | undefined {
  let engine = given.engine as string | undefined
  for (const { name, cli } of engineParts)
    for (const key of optionsOf(cli).filter((key) => !hintsOf(cli).includes(key))) {
      if (given[key] === undefined) continue
      if (engine !== undefined && engine !== name) throw onlyWith(key, name)
      engine = name
    }
  for (const { name, cli } of engineParts)
    for (const key of hintsOf(cli))
      if (given[key] !== undefined && engine !== undefined && engine !== name) throw onlyWith(key, name)
  return engine as EngineName | undefined
}

/** Whether the options name a cluster. Then none is started on this machine, even if the script asks for one. */
export const namesCluster = (given: TypedPlace): boolean =>
  engineParts.some(({ cli }) => (cli?.names as readonly string[] | undefined)?.some((key) => given[key] !== undefined))

type Cli = (typeof engineParts)[number]['cli']
const optionsOf = (cli: Cli) => Object.keys(cli?.options ?? {})
const hintsOf = (cli: Cli) => (cli?.hints ?? []) as readonly string[]

const onlyWith = (key: string, engine: string) =>
  new UsageError(`${flagOf(key)} can only be used with --engine ${engine}`)

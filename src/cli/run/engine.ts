import { flagOf } from '../command.ts'
import type { RunArgs } from '../specs/run.ts'
import { UsageError } from '../usage-error.ts'

/** Options that only one engine has a use for. */
const OF_ONE_ENGINE = {
  nodes: 'nodes',
  listen: 'nodes',
  rayAddress: 'ray',
  sparkRemote: 'spark',
  sparkMaster: 'spark',
} as const satisfies Partial<Record<keyof RunArgs, RunArgs['engine']>>

type Given = Pick<RunArgs, 'engine' | 'advertiseHost' | keyof typeof OF_ONE_ENGINE>

/** The engine that was asked for: who names nodes, or a cluster, wants to use them. */
export function engineOf(given: Given): RunArgs['engine'] {
  let { engine } = given
  for (const [key, wanted] of Object.entries(OF_ONE_ENGINE)) {
    if (given[key as keyof typeof OF_ONE_ENGINE] === undefined) continue
    if (engine !== undefined && engine !== wanted) throw onlyWith(key, wanted)
    engine = wanted
  }
  // Alone it names no cluster: the script, or the environment, may have one.
  if (given.advertiseHost !== undefined && engine !== undefined && engine !== 'spark')
    throw onlyWith('advertiseHost', 'spark')
  return engine
}

const onlyWith = (key: string, engine: string) =>
  new UsageError(`${flagOf(key)} is only of use with --engine ${engine}`)

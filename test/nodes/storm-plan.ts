import type { TaskOptions } from '../../dist/index.js'
import { seeded } from '../../src/random.ts'
import type { StormInput } from '../agents/storm-nodes.ts'

export interface Planned {
  readonly id: string
  readonly input: StormInput
  readonly options: Pick<TaskOptions, 'rerun' | 'maxAttempts'>
}

const LARGEST_BYTES = 300_000

/** The tasks of a storm: the same for the same seed, for the driver that runs them and for whoever looks at its answers. */
export function plan(seed: number, count: number, ledger: string): Planned[] {
  const random = seeded(seed)
  return Array.from({ length: count }, (_, index) => {
    const kind = kindOf(random())
    const ms = 50 + Math.floor(250 * random())
    const bytes = Math.ceil(LARGEST_BYTES ** random())
    const input = { kind, ledger, ms: kind === 'kill' || kind === 'parent' ? 20 : ms, bytes }
    return { id: `t${index}`, input, options: optionsOf(kind) }
  })
}

function kindOf(at: number): StormInput['kind'] {
  if (at < 0.004) return 'kill'
  if (at < 0.05) return 'throw'
  if (at < 0.12) return 'parent'
  if (at < 0.2) return 'never'
  return at < 0.6 ? 'sleep' : 'quick'
}

function optionsOf(kind: StormInput['kind']): Planned['options'] {
  if (kind === 'never') return { rerun: 'never' }
  return kind === 'kill' || kind === 'throw' ? { maxAttempts: 2 } : {}
}

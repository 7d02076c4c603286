import { ManyworldsError } from '../../errors.ts'
import { parsedObject } from '../../models/failures.ts'
import type { TinkerSettings } from './settings.ts'

/** What a version is here: where Tinker has the weights. */
export interface TinkerWeights {
  readonly kind: 'tinker-weights'
  readonly base: string
  readonly rank: number
  /** `tinker://…/sampler_weights/…` */
  readonly path: string
}

/** What a learner goes on from: where Tinker has the weights and the optimizer. */
export interface TinkerState {
  readonly kind: 'tinker-state'
  readonly base: string
  readonly rank: number
  readonly steps: number
  /** `tinker://…/weights/…` */
  readonly path: string
  /** The same weights as they were published: a version never changes its bytes. */
  readonly published: string
}

export const packed = (value: TinkerWeights | TinkerState): Uint8Array<ArrayBuffer> =>
  new Uint8Array(Buffer.from(`${JSON.stringify(value)}\n`))

/** Reads what a learner published: where a sampler finds that version. */
export function tinkerWeights(bytes: Uint8Array): TinkerWeights {
  const { kind, base, rank, path } = parsed(bytes)
  if (kind !== 'tinker-weights' || !isPath(path)) throw damaged(bytes, 'a version of a policy at Tinker')
  return { kind, base: String(base), rank: Number(rank), path }
}

export function readState(bytes: Uint8Array, { name, base, rank }: TinkerSettings): TinkerState {
  const { kind, steps, path, published, ...of } = parsed(bytes)
  if (kind !== 'tinker-state' || !isPath(path) || !isPath(published) || !Number.isInteger(steps))
    throw damaged(bytes, `the state of a learner of policy '${name}' at Tinker`)
  for (const [key, wanted] of Object.entries({ base, rank }))
    if (of[key] !== wanted)
      throw new ManyworldsError(
        'LEARNER_INVALID',
        `this state is of an adapter with \`${key}\` ${String(of[key])}, and policy '${name}' has ${wanted}`,
      )
  return { kind, base, rank, steps: steps as number, path, published }
}

const parsed = (bytes: Uint8Array) => parsedObject(Buffer.from(bytes).toString('utf8')) ?? {}

const isPath = (value: unknown): value is string => typeof value === 'string' && value.startsWith('tinker://')

const damaged = (bytes: Uint8Array, what: string) =>
  new ManyworldsError('LEARNER_INVALID', `these ${bytes.length} bytes are not ${what}, or are damaged`)

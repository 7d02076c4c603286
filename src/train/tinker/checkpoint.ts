import { ManyworldsError } from '../../errors.ts'
import { parsedObject } from '../../models/failures.ts'
import type { TinkerSettings } from './settings.ts'

/** A version: the path of its weights at Tinker. */
export interface TinkerWeights {
  readonly kind: 'tinker-weights'
  readonly base: string
  readonly rank: number
  /** `tinker://…/sampler_weights/…` */
  readonly path: string
}

/** The state of a learner: the path of its weights and optimizer at Tinker. */
export interface TinkerState {
  readonly kind: 'tinker-state'
  readonly base: string
  readonly rank: number
  readonly steps: number
  /** `tinker://…/weights/…` */
  readonly path: string
  /** The path of the same weights as they were published, because the bytes of a version must not change. */
  readonly published: string
}

export const packed = (value: TinkerWeights | TinkerState): Uint8Array<ArrayBuffer> =>
  new Uint8Array(Buffer.from(`${JSON.stringify(value)}\n`))

/** Reads a published version: where a sampler finds its weights. */
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
        `this state is of an adapter with \`${key}\` ${String(of[key])}, but policy '${name}' has ${wanted}`,
      )
  return { kind, base, rank, steps: steps as number, path, published }
}

const parsed = (bytes: Uint8Array) => parsedObject(Buffer.from(bytes).toString('utf8')) ?? {}

const isPath = (value: unknown): value is string => typeof value === 'string' && value.startsWith('tinker://')

const damaged = (bytes: Uint8Array, what: string) =>
  new ManyworldsError('LEARNER_INVALID', `these ${bytes.length} bytes are not ${what}, or they are damaged`)

import { nearest } from '../../did-you-mean.ts'
import { ManyworldsError } from '../../errors.ts'
import type { PipelineOptions, TrainingAlgorithm } from '../pipeline/options.ts'

/**
 * Keys of `algorithm` that can be swept. Its `epochs` is excluded, because in a sweep that is the length of the
 * trainings.
 */
const ALGORITHM_KEYS = [
  'advantages',
  'clipNorm',
  'failed',
  'loss',
  'lr',
  'miniBatches',
  'normalizer',
  'proximal',
] as const
/** Keys of the options that can be swept. */
const OPTION_KEYS = [
  ...['algorithm', 'control', 'curriculum', 'overlap', 'patience', 'rollouts', 'tasksPerEpoch', 'tasksPerUpdate'],
] as const satisfies readonly (keyof PipelineOptions)[]

export type AlgorithmKey = (typeof ALGORITHM_KEYS)[number]
export type OptionKey = (typeof OPTION_KEYS)[number]

/** What to try: every combination of the values, each with every seed. */
export type SweepGrid = {
  readonly [Key in AlgorithmKey]?: readonly NonNullable<TrainingAlgorithm[Key]>[]
} & {
  readonly [Key in OptionKey]?: readonly NonNullable<PipelineOptions[Key]>[]
} & {
  /** The number of seeds, starting with the pipeline's, or a list of seeds. Default 1. */
  readonly seeds?: number | readonly number[]
  /** The length of each training. Default: that of the pipeline. */
  readonly epochs?: number
}

/** One combination of values. */
export interface SweepPoint {
  /** `lr0.05.rollouts4`: part of the ids of its trainings. Empty if only seeds are swept. */
  readonly label: string
  readonly values: Readonly<Record<string, unknown>>
}

const MAX_TRAININGS = 10_000
const KEYS = [...ALGORITHM_KEYS, ...OPTION_KEYS, 'seeds', 'epochs']

/** The points of a grid, in the order of its keys; the last key varies fastest. */
export function pointsOf(grid: SweepGrid): readonly SweepPoint[] {
  if (typeof grid !== 'object' || grid === null || Array.isArray(grid))
    throw invalid('the grid must be an object of lists, such as { lr: [0.02, 0.05], seeds: 5 }')
  const { seeds: _, epochs: __, ...axes } = grid as Record<string, unknown>
  let points: SweepPoint[] = [{ label: '', values: {} }]
  for (const [key, values] of Object.entries(axes)) {
    if (values === undefined) continue
    const named = namedValues(key, values)
    if (points.length * named.length > MAX_TRAININGS)
      throw invalid(`the grid has more than ${MAX_TRAININGS} combinations; try fewer values`)
    points = points.flatMap((point) =>
      named.map(({ name, value }) => ({
        label: [point.label, `${key}${name}`].filter((text) => text !== '').join('.'),
        values: { ...point.values, [key]: value },
      })),
    )
  }
  return points
}

/** The seeds, starting with `first`. */
export function seedsOf({ seeds = 1 }: SweepGrid, first: number): readonly number[] {
  const list = Array.isArray(seeds) ? (seeds as readonly number[]) : undefined
  const isRight = list
    ? list.length > 0 && list.every(Number.isSafeInteger) && new Set(list).size === list.length
    : Number.isInteger(seeds) && Number(seeds) >= 1 && Number(seeds) <= MAX_TRAININGS
  if (!isRight)
    throw invalid(
      `\`seeds\` must be a number of seeds from 1 to ${MAX_TRAININGS}, or a list of different whole numbers`,
    )
  return list ?? Array.from({ length: seeds as number }, (_, index) => first + index)
}

/** The options of a point. */
export function optionsAt(options: PipelineOptions, { values }: SweepPoint): PipelineOptions {
  const entries = Object.entries(values)
  const ofAlgorithm = entries.filter(([key]) => (ALGORITHM_KEYS as readonly string[]).includes(key))
  const { algorithm, ...others } = Object.fromEntries(entries.filter((entry) => !ofAlgorithm.includes(entry)))
  return {
    ...options,
    ...others,
    algorithm: { ...options.algorithm, ...(algorithm as TrainingAlgorithm), ...Object.fromEntries(ofAlgorithm) },
  }
}

function namedValues(key: string, values: unknown): { readonly name: string; readonly value: unknown }[] {
  if (!KEYS.includes(key)) throw invalid(unknownKey(key))
  if (!Array.isArray(values) || values.length === 0)
    throw invalid(`\`${key}\` must be a list of values to try, such as ${key === 'lr' ? '[0.02, 0.05]' : '[…]'}`)
  const names = values.map((value, index) => nameOf(value) ?? String(index + 1))
  const twice = names.find((name, index) => names.indexOf(name) !== index)
  if (twice === undefined) return values.map((value, index) => ({ name: names[index]!, value }))
  if (typeof values[names.indexOf(twice)] !== 'object') throw invalid(`\`${key}\` contains ${twice} twice`)
  // Objects with the same name are numbered instead.
  return values.map((value, index) => ({ name: String(index + 1), value }))
}

/**
 * The value as part of an id, which may contain letters, digits, ".", "_" and "-". Undefined: use its number in the
 * list.
 */
function nameOf(value: unknown): string | undefined {
  if (typeof value === 'number' || typeof value === 'boolean') return String(value).replace('+', '')
  if (typeof value === 'string') return /^[\w-]{1,30}$/.test(value) ? value : undefined
  return typeof value === 'object' && value !== null && 'name' in value && typeof value.name === 'string'
    ? nameOf(value.name)
    : undefined
}

function unknownKey(key: string): string {
  const meant = nearest(key, KEYS)
  const hint = meant === undefined ? '' : `, did you mean '${meant}'?`
  return `unknown key '${key}'${hint}; allowed: ${[...ALGORITHM_KEYS, ...OPTION_KEYS].sort().join(', ')}; and \`seeds\`, \`epochs\``
}

export const invalid = (what: string): ManyworldsError => new ManyworldsError('CONFIG_INVALID', `sweep: ${what}`)

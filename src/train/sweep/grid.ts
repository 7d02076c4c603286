import { ManyworldsError } from '../../errors.ts'
import { nearest } from '../../near-miss.ts'
import type { PipelineOptions, TrainingAlgorithm } from '../pipeline/options.ts'

/** Keys of `algorithm` that can be swept. Its `epochs` is not one: in a sweep, that is the length of the trainings. */
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

type AlgorithmKey = (typeof ALGORITHM_KEYS)[number]
type OptionKey = (typeof OPTION_KEYS)[number]

/** What is tried: every combination of the values, each with every seed. */
export type SweepGrid = {
  readonly [Key in AlgorithmKey]?: readonly NonNullable<TrainingAlgorithm[Key]>[]
} & {
  readonly [Key in OptionKey]?: readonly NonNullable<PipelineOptions[Key]>[]
} & {
  /** How many seeds, from that of the pipeline on; or which. Default 1. */
  readonly seeds?: number | readonly number[]
  /** How long each training is. Default: what the pipeline says. */
  readonly epochs?: number
}

/** One combination of values. */
export interface SweepPoint {
  /** `lr0.05.rollouts4`: part of the ids of its trainings. Empty if nothing but seeds is tried. */
  readonly label: string
  readonly values: Readonly<Record<string, unknown>>
}

const MOST_TRAININGS = 10_000
const KEYS = [...ALGORITHM_KEYS, ...OPTION_KEYS, 'seeds', 'epochs']

/** The points of a grid, in the order of its keys, the last one changing fastest. */
export function pointsOf(grid: SweepGrid): readonly SweepPoint[] {
  if (typeof grid !== 'object' || grid === null || Array.isArray(grid))
    throw invalid('give an object of lists: { lr: [0.02, 0.05], seeds: 5 }')
  const { seeds: _, epochs: __, ...axes } = grid as Record<string, unknown>
  let points: SweepPoint[] = [{ label: '', values: {} }]
  for (const [key, values] of Object.entries(axes)) {
    if (values === undefined) continue
    const named = namedValues(key, values)
    if (points.length * named.length > MOST_TRAININGS)
      throw invalid(`these are more than ${MOST_TRAININGS} combinations; try fewer values`)
    points = points.flatMap((point) =>
      named.map(({ name, value }) => ({
        label: [point.label, `${key}${name}`].filter((text) => text !== '').join('.'),
        values: { ...point.values, [key]: value },
      })),
    )
  }
  return points
}

/** The seeds, from `first` on. */
export function seedsOf({ seeds = 1 }: SweepGrid, first: number): readonly number[] {
  const list = Array.isArray(seeds) ? (seeds as readonly number[]) : undefined
  const isRight = list
    ? list.length > 0 && list.every(Number.isSafeInteger) && new Set(list).size === list.length
    : Number.isInteger(seeds) && Number(seeds) >= 1 && Number(seeds) <= MOST_TRAININGS
  if (!isRight)
    throw invalid(
      `\`seeds\` must be how many there are, from 1 to ${MOST_TRAININGS}, or a list of different whole numbers`,
    )
  return list ?? Array.from({ length: seeds as number }, (_, place) => first + place)
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
    throw invalid(`\`${key}\` must be a list of the values to try, such as ${key === 'lr' ? '[0.02, 0.05]' : '[…]'}`)
  const names = values.map((value, place) => nameOf(value) ?? String(place + 1))
  const twice = names.find((name, place) => names.indexOf(name) !== place)
  if (twice === undefined) return values.map((value, place) => ({ name: names[place]!, value }))
  if (typeof values[names.indexOf(twice)] !== 'object') throw invalid(`\`${key}\` has ${twice} twice`)
  // Objects of the same name: numbered instead.
  return values.map((value, place) => ({ name: String(place + 1), value }))
}

/** As a part of an id, which has letters, digits, ".", "_" and "-". Undefined: its number in the list has to do. */
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
  return `unknown key '${key}'${hint}; what can be tried: ${[...ALGORITHM_KEYS, ...OPTION_KEYS].sort().join(', ')}; and \`seeds\`, \`epochs\``
}

export const invalid = (what: string): ManyworldsError => new ManyworldsError('CONFIG_INVALID', `sweep: ${what}`)

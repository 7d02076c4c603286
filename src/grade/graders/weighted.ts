import { hash } from 'node:crypto'
import { checkGrade } from '../check-grade.ts'
import type { Grade, GradePart } from '../grade.ts'
import { gradeHere } from '../grade-here.ts'
import { defineGrader, type GradeFunction, type Grader, isGrader, withOptions } from '../grader.ts'
import { EXACT_MATCH } from './exact-match.ts'
import { GAIA_MATCH } from './gaia-match.ts'
import { INCLUDES } from './includes.ts'
import { JSON_MATCH } from './json.ts'
import { NUMERIC } from './numeric.ts'
import { checkOptions, wrongOption } from './options.ts'
import { REGEX } from './regex.ts'

/** A grader or a grading function, and its weight, by name. */
export type WeightedParts = Readonly<Record<string, readonly [grader: Grader | PartFunction, weight: number]>>
export type PartFunction = GradeFunction<never, never, never>

export interface WeightedOptions {
  /** For graders with functions: unique in its module. Default: made from the names and weights of the parts. */
  readonly name?: string
  /** True: the functions need the steps. */
  readonly trajectory?: boolean
  /** `import.meta.url`. Needed only if the call site cannot be determined. */
  readonly module?: string | URL
}

/** A built-in part, as data. */
interface PlainPart {
  readonly grader: string
  readonly options: unknown
  readonly weight: number
}

const WEIGHTED: Grader = defineGrader<unknown, unknown, Readonly<Record<string, PlainPart>>>({
  name: 'weighted',
  module: import.meta.url,
  grade: async (sample, ctx) => {
    const grades = Object.entries(ctx.params).map(async ([name, { grader, options, weight }]) => {
      const grade = await gradeHere(withOptions(readyMade(grader)!, options), sample, ctx)
      return { name, weight, grade }
    })
    return combine(await Promise.all(grades))
  },
})

const READY_MADE = [EXACT_MATCH, GAIA_MATCH, INCLUDES, JSON_MATCH, NUMERIC, REGEX, WEIGHTED]
const readyMade = (name: string) => READY_MADE.find((grader) => grader.name === name)

/**
 * Combines several graders: the reward is the weighted mean of their rewards. Solved if every part that reports `success` is
 * solved. If a part has no reward, the whole grade has none.
 *
 * If it contains your own functions or graders, call it at the top level of a module, like `defineGrader`.
 *
 * @example
 * weighted({ correct: [exactMatch(), 0.8], short: [({ answer }) => String(answer).length < 80, 0.2] })
 */
export function weighted(parts: WeightedParts, options: WeightedOptions = {}): Grader {
  const entries = checkParts(parts)
  const { trajectory = false, ...given } = checkOptions('weighted', options, ['name', 'trajectory', 'module'])
  const graders = entries.flatMap(([, [grader]]) => (isGrader(grader) ? [grader] : []))
  const traits = {
    trajectory: trajectory || graders.some((grader) => grader.trajectory),
    evaluationOnly: graders.some((grader) => grader.evaluationOnly === true),
  }
  const plain = entries.map(
    ([name, [grader, weight]]) => isGrader(grader) && isReadyMade(grader) && asData(name, grader, weight),
  )
  if (given.name === undefined && plain.every((part) => part !== false))
    return withOptions(
      { ...WEIGHTED, ...(traits.evaluationOnly && { evaluationOnly: true }) },
      Object.fromEntries(plain),
    )
  return defineGrader({
    name: `weighted(${entries.map(([name, [, weight]]) => `${name} ${weight}`).join(', ')})`,
    ...given,
    ...traits,
    // Not used for grading: they make the hash of the grader depend on its parts.
    params: entries.map(([name, [grader, weight]]) => ({ name, weight, grader: hashOf(grader) })),
    grade: async (sample, ctx) => {
      const grades = entries.map(async ([name, [grader, weight]]) => {
        const grade = isGrader(grader)
          ? await gradeHere(grader, sample, ctx)
          : checkGrade(await (grader as GradeFunction)(sample, ctx), `part '${name}' of weighted`)
        return { name, weight, grade }
      })
      return combine(await Promise.all(grades))
    },
  })
}

function checkParts(parts: WeightedParts): (readonly [string, WeightedParts[string]])[] {
  const entries = Object.entries(parts ?? {})
  if (entries.length === 0) throw wrongOption('weighted', 'give at least one part: { name: [grader, weight] }')
  for (const [name, part] of entries) {
    if (!Array.isArray(part) || !(typeof part[0] === 'function' || isGrader(part[0])))
      throw wrongOption('weighted', `part '${name}' must be [grader, weight]`)
    if (!(Number.isFinite(part[1]) && part[1] > 0))
      throw wrongOption('weighted', `the weight of part '${name}' must be a number above 0, it is ${part[1]}`)
  }
  return entries
}

const isReadyMade = ({ ref }: Grader) =>
  READY_MADE.some((own) => own.ref.module === ref.module && own.name === ref.name)

const asData = (name: string, { ref, params }: Grader, weight: number): [string, PlainPart] => [
  name,
  { grader: ref.name, options: params ?? {}, weight },
]

const hashOf = (grader: Grader | PartFunction) => (isGrader(grader) ? grader.sha256 : hash('sha256', String(grader)))

interface NamedGrade {
  readonly name: string
  readonly weight: number
  readonly grade: Grade
}

function combine(grades: readonly NamedGrade[]): Grade {
  const lines = grades.flatMap(({ name, grade }) => (grade.feedback ? [`${name}: ${grade.feedback}`] : []))
  const feedback = lines.length > 0 ? { feedback: lines.join('\n') } : {}
  const graded = grades.flatMap(({ name, weight, grade: { reward } }): [string, GradePart][] =>
    reward === null ? [] : [[name, { value: reward, weight }]],
  )
  const parts = Object.fromEntries(graded)
  if (graded.length < grades.length) return { reward: null, parts, ...feedback }
  let [sum, weights] = [0, 0]
  for (const [, { value, weight }] of graded) {
    sum += value * weight
    weights += weight
  }
  const said = grades.flatMap(({ grade: { success } }) => success ?? [])
  return { reward: sum / weights, success: said.length > 0 ? said.every(Boolean) : null, parts, ...feedback }
}

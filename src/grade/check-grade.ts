import { nearest } from '../did-you-mean.ts'
import type { Grade, GradePart } from './grade.ts'

/** The name of the error for an invalid return value of a grader. */
export const GRADE_INVALID = 'GradeInvalid'

const KEYS: readonly string[] = ['reward', 'success', 'parts', 'feedback'] satisfies (keyof Grade)[]

/** Converts the return value of a grader to a grade. Throws if it is invalid, and says what to return. */
export function checkGrade(value: unknown, grader: string): Grade {
  const wrong = (what: string): never => {
    const text = `grader '${grader}' ${what}${what.endsWith('?') ? ' Return' : '; return'} true, false, a number, or { ${KEYS.join(', ')} }`
    throw Object.assign(new TypeError(text), { name: GRADE_INVALID })
  }
  if (typeof value === 'boolean') return { reward: value ? 1 : 0, success: value }
  if (typeof value === 'number') return checkGrade({ reward: value }, grader)
  if (typeof value !== 'object' || value === null) return wrong(`returned ${value === null ? 'null' : typeof value}`)
  const unknown = Object.keys(value).find((key) => !KEYS.includes(key))
  if (unknown !== undefined) return wrong(`returned the ${unknownKey(unknown)}`)
  const { reward = sumOf(value as Grade), success = null, parts, feedback } = value as Partial<Grade>
  if (reward === undefined) return wrong('returned an object without `reward`')
  if (reward !== null && !Number.isFinite(reward))
    return wrong(`returned the reward ${String(reward)}, which is not a finite number`)
  if (success !== null && typeof success !== 'boolean') return wrong(`returned \`success\` ${String(success)}`)
  if (feedback !== undefined && typeof feedback !== 'string') return wrong('returned `feedback` that is not a text')
  for (const [name, part] of Object.entries(parts ?? {}))
    if (!isPart(part)) return wrong(`returned the part '${name}' without a finite \`value\` and \`weight\``)
  return { reward, success, ...(parts && { parts }), ...(feedback !== undefined && { feedback }) }
}

const isPart = (part: unknown): part is GradePart =>
  typeof part === 'object' &&
  part !== null &&
  Number.isFinite((part as GradePart).value) &&
  Number.isFinite((part as GradePart).weight)

function unknownKey(key: string): string {
  const near = nearest(key, KEYS)
  return `unknown key '${key}'${near === undefined ? '' : `, did you mean '${near}'?`}`
}

/** The weighted mean of the parts. */
function sumOf({ parts }: Grade): number | undefined {
  if (parts === undefined || Object.keys(parts).length === 0) return undefined
  let sum = 0
  let weights = 0
  for (const { value, weight } of Object.values(parts)) {
    sum += value * weight
    weights += weight
  }
  return weights === 0 ? undefined : sum / weights
}

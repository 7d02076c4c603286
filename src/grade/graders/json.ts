import { isRowSchema, type RowSchema } from '../../data/row-schema.ts'
import type { Grade } from '../grade.ts'
import { defineGrader, type Grader, withOptions } from '../grader.ts'
import { differences } from './difference.ts'
import { checkOptions, noTruth, passOrFail, wrongOption } from './options.ts'
import { shown } from './text.ts'

export interface JsonOptions {
  /** Ignore keys that the ground truth does not have. */
  readonly ignoreExtra?: boolean
}

export interface JsonSchemaOptions {
  /** Solved if the answer matches this schema. The ground truth is ignored. */
  readonly schema: RowSchema
  /** A schema is code, and workers find code by module and name: call this at the top level of a module. */
  readonly name: string
  /** `import.meta.url`. Needed only if the call site cannot be determined. */
  readonly module?: string | URL
}

const MAX_ISSUES = 5
/** Longer texts are not parsed and count as unsolved. */
const MAX_CHARS = 10_000_000

export const JSON_MATCH = defineGrader<unknown, unknown, JsonOptions>({
  name: 'json',
  module: import.meta.url,
  grade: ({ answer, groundTruth }, { params: { ignoreExtra = false } }) => {
    if (groundTruth === undefined) return noTruth('json')
    const parsed = typeof answer === 'string' ? parse(answer) : { value: answer }
    // The ground truth may be a text that is not JSON.
    if ('wrong' in parsed) return passOrFail(answer === groundTruth, `the answer is not JSON: ${parsed.wrong}`)
    const expected = typeof groundTruth === 'string' ? jsonOr(groundTruth) : groundTruth
    const found = differences(parsed.value, expected, { ignoreExtra, limit: MAX_ISSUES })
    return passOrFail(found.length === 0, found.map(({ path, what }) => `${path} ${what}`).join('\n'))
  },
})

/**
 * Solved if the answer equals the ground truth or matches a schema. The answer is a value, or JSON text, which may be in a code
 * block, as models often write it.
 */
export function json(options: JsonOptions | JsonSchemaOptions = {}): Grader {
  if (!('schema' in options)) return withOptions(JSON_MATCH, checkOptions('json', options, ['ignoreExtra']))
  const { schema, name, module } = checkOptions('json', options, ['schema', 'name', 'module'])
  if (!isRowSchema(schema))
    throw wrongOption('json', '`schema` must be a Standard Schema, such as a zod schema: z.object({ … })')
  if (typeof name !== 'string' || name === '')
    throw wrongOption('json', '`name` is required with `schema`, because workers find the grader by its name')
  return defineGrader({
    name,
    ...(module === undefined ? {} : { module }),
    grade: ({ answer }) => {
      const parsed = typeof answer === 'string' ? parse(answer) : { value: answer }
      return 'wrong' in parsed
        ? passOrFail(false, `the answer is not JSON: ${parsed.wrong}`)
        : fits(schema, parsed.value)
    },
  })
}

async function fits(schema: RowSchema, value: unknown): Promise<Grade> {
  const { issues = [] } = await schema['~standard'].validate(value)
  const shownIssues = issues.slice(0, MAX_ISSUES).map(({ message, path = [] }) => {
    const keys = path.map((part) => String(typeof part === 'object' ? part.key : part))
    return `${['answer', ...keys].join('.')}: ${message}`
  })
  return passOrFail(issues.length === 0, shownIssues.join('\n'))
}

type Parsed = { readonly value: unknown } | { readonly wrong: string }

function parse(text: string): Parsed {
  if (text.length > MAX_CHARS) return { wrong: `it has ${text.length} characters, more than ${MAX_CHARS}` }
  try {
    return { value: JSON.parse(withoutFence(text)) }
  } catch (error) {
    return { wrong: `${(error as Error).message.slice(0, 200)}; it is ${shown(text)}` }
  }
}

/** Parses a ground truth that may be JSON, as in most data sets, or a plain text. */
function jsonOr(text: string): unknown {
  const parsed = parse(text)
  return 'value' in parsed ? parsed.value : text
}

const FENCE = '```'

/** The content of a code block, if the text is one. */
function withoutFence(text: string): string {
  const trimmed = text.trim()
  const lineEnd = trimmed.indexOf('\n')
  if (!trimmed.startsWith(FENCE) || !trimmed.endsWith(FENCE) || lineEnd < 0) return trimmed
  return trimmed.slice(lineEnd + 1, -FENCE.length)
}

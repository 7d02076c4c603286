import * as z from 'zod/mini'
import { issuesText } from '../config-issues.ts'
import { badRequest } from './problem.ts'

/** A safeguard against mistakes. */
const MAX_ROLLOUTS = 4096

const name = z.string().check(z.minLength(1), z.maxLength(200))
const task = z.strictObject({
  id: z.optional(name),
  input: z.optional(z.unknown()),
  groundTruth: z.optional(z.unknown()),
  metadata: z.optional(z.record(z.string(), z.unknown())),
})
const model = z.strictObject({
  name: z.optional(name),
  baseURL: z.string().check(z.minLength(1)),
  model: z.string().check(z.minLength(1)),
  apiKey: z.optional(z.string()),
  logprobs: z.optional(z.enum(['raw', 'processed'])),
})
const request = z.strictObject({
  tasks: z.array(task).check(z.minLength(1)),
  rollouts: z._default(z.number().check(z.int(), z.minimum(1), z.maximum(MAX_ROLLOUTS)), 1),
  model: z.optional(model),
  seed: z.optional(z.number().check(z.int())),
  sampling: z.optional(z.record(z.string(), z.unknown())),
  deadlineMs: z.optional(z.number().check(z.positive())),
})

const KEYS: Readonly<Record<string, readonly string[]>> = {
  '': Object.keys(request.shape),
  model: Object.keys(model.shape),
}

/** A trainer's request for groups of rollouts. */
export type RolloutRequest = z.infer<typeof request>
export type RequestedModel = NonNullable<RolloutRequest['model']>

/** Parses and validates a body. Throws a `Problem` that names every mistake. */
export function readRequest(text: string): RolloutRequest {
  let given: unknown
  try {
    given = JSON.parse(text)
  } catch (error) {
    throw badRequest(`the body is not valid JSON: ${(error as Error).message}`)
  }
  if (typeof given !== 'object' || given === null || Array.isArray(given))
    throw badRequest('the body must be an object: { "tasks": [{ "input": … }], "rollouts": 8 }')
  const { data, error } = request.safeParse(given)
  if (error)
    throw badRequest(
      issuesText(
        error.issues,
        given,
        (part) => KEYS[part] ?? (/^tasks\.\d+$/.test(part) ? Object.keys(task.shape) : []),
      ),
    )
  const without = data.tasks.findIndex((one) => one.input === undefined)
  if (without >= 0) throw badRequest(`\`tasks.${without}\` has no \`input\``)
  return data
}

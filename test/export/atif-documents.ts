import fc from 'fast-check'

/** Documents of ATIF that hold its rules, with every field that it has. */

type Fields = Record<string, unknown>

const text = fc.string({ maxLength: 6, unit: 'binary' })
const json = fc.jsonValue({ maxDepth: 2 }) as fc.Arbitrary<unknown>
const free = fc.dictionary(fc.string({ maxLength: 4 }), json, { maxKeys: 3, noNullPrototype: true })
const ids = fc.array(fc.nat(2 ** 31 - 1), { maxLength: 4 })
const part = fc.oneof(
  text.map((words) => ({ type: 'text', text: words })),
  text.map((path) => ({ type: 'image', source: { media_type: 'image/png', path } })),
)
const content = fc.oneof(text, fc.array(part, { maxLength: 2 }))
const some = <T extends Record<string, fc.Arbitrary<unknown>>>(required: (keyof T)[], fields: T) =>
  fc.record(fields, { requiredKeys: required as never, noNullPrototype: true }) as fc.Arbitrary<Fields>

const metrics = some([], {
  ...{
    prompt_tokens: fc.nat(),
    completion_tokens: fc.nat(),
    cached_tokens: fc.nat(),
    cost_usd: fc.double({ min: 0, max: 1e6, noNaN: true }),
  },
  ...{ prompt_token_ids: ids, completion_token_ids: ids, extra: free },
}).chain((fields) => {
  const count = (fields.completion_token_ids as number[] | undefined)?.length ?? 2
  const logprobs = fc.array(fc.double({ min: -9, max: 0, noNaN: true }), { minLength: count, maxLength: count })
  return fc.option(logprobs).map((values) => (values ? { ...fields, logprobs: values } : fields))
})

const call = some(['tool_call_id', 'function_name', 'arguments'], {
  ...{ tool_call_id: fc.constantFrom('a', 'b', 'c'), function_name: text, arguments: free, extra: free },
})
const result = (calls: readonly Fields[], refs: readonly string[]) =>
  some([], {
    ...(calls.length > 0 && { source_call_id: fc.constantFrom(...calls.map(({ tool_call_id: id }) => id)) }),
    content,
    ...(refs.length > 0 && {
      subagent_trajectory_ref: fc.constantFrom(...refs).map((id) => [{ trajectory_id: id }]),
    }),
    extra: free,
  })
const observation = (calls: readonly Fields[], refs: readonly string[]) =>
  fc.array(result(calls, refs), { maxLength: 3 }).map((results) => ({ results }))

const common = {
  message: content,
  timestamp: fc.constant('2026-01-01T00:00:00Z'),
  extra: free,
  is_copied_context: fc.boolean(),
}

const step = (refs: readonly string[]): fc.Arbitrary<Fields> =>
  fc.oneof(
    some(['message', 'source'], { ...common, source: fc.constantFrom('system', 'user') }),
    some(['message', 'source'], { ...common, source: fc.constant('system'), observation: observation([], refs) }),
    fc
      .tuple(
        some(['message', 'source'], {
          ...{ ...common, source: fc.constant('agent'), model_name: text, reasoning_content: text, metrics },
          ...{ tool_calls: fc.array(call, { maxLength: 3 }), llm_call_count: fc.integer({ min: 0, max: 2 }) },
          reasoning_effort: fc.oneof(text, fc.double({ noNaN: true, noDefaultInfinity: true })),
        }),
        fc.boolean(),
      )
      .chain(([fields, observes]) => {
        const { metrics: _, reasoning_content: __, ...rest } = fields
        const legal = fields.llm_call_count === 0 ? rest : fields
        const calls = (fields.tool_calls ?? []) as Fields[]
        return observes ? observation(calls, refs).map((seen) => ({ ...legal, observation: seen })) : fc.constant(legal)
      }),
  )

const agent = some(['name', 'version'], {
  ...{ name: text, version: text, model_name: text, tool_definitions: fc.array(free, { maxLength: 2 }), extra: free },
})

const document = (depth: number, id: fc.Arbitrary<string>): fc.Arbitrary<Fields> =>
  fc
    .array(fc.constant(0), { maxLength: depth === 0 ? 0 : 2 })
    .chain((inside) => {
      const names = inside.map((_, place) => `sub-${place}`)
      return fc.tuple(
        some(['schema_version', 'agent', 'trajectory_id'], {
          ...{ schema_version: fc.constantFrom('ATIF-v1.7', 'ATIF-v1.4'), session_id: text, trajectory_id: id, agent },
          ...{ notes: text, final_metrics: free, continued_trajectory_ref: text, extra: free },
        }),
        fc.array(step(names), { minLength: 1, maxLength: 6 }),
        fc.tuple(...names.map((name) => document(depth - 1, fc.constant(name)))),
      )
    })
    .map(([fields, steps, inside]) => ({
      ...fields,
      steps: steps.map((one, place) => ({ step_id: place + 1, ...one })),
      ...(inside.length > 0 && { subagent_trajectories: inside }),
    }))

export const atifDocuments = document(2, fc.constant('root'))

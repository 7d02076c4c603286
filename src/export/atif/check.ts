import {
  anything,
  type Check,
  flag,
  list,
  maybe,
  number,
  object,
  oneOf,
  record,
  text,
  whole,
} from '../../trajectory/shape-checks.ts'
import type { AtifStep, AtifTrajectory } from './document.ts'

/** The deepest nesting of sub-agents. */
const MOST_LEVELS = 16
const AGENT_ONLY = ['model_name', 'reasoning_effort', 'reasoning_content', 'tool_calls', 'metrics'] as const

const extra = maybe(record(anything))
const ids: Check = (value, place, say) => {
  if (!Array.isArray(value)) return say(`\`${place}\` must be a list`)
  const wrong = value.findIndex((id) => !Number.isInteger(id) || id < 0 || id > 2 ** 31 - 1)
  if (wrong >= 0) say(`\`${place}[${wrong}]\` must be a token id: a whole number from 0 to 2147483647`)
}
const image = object({ media_type: text, path: text })
const part: Check = (value, place, say) => {
  const { type } = (typeof value === 'object' && value !== null ? value : {}) as { type?: unknown }
  if (type === 'text') object({ text })(value, place, say)
  else if (type === 'image') object({ source: image })(value, place, say)
  else say(`\`${place}.type\` must be one of 'text', 'image'`)
}
const content: Check = (value, place, say) => {
  if (typeof value !== 'string') list(part)(value, place, say)
}
const effort: Check = (value, place, say) => {
  if (typeof value !== 'string' && typeof value !== 'number') say(`\`${place}\` must be a text or a number`)
}

const metrics = object({
  ...{ prompt_tokens: maybe(whole), completion_tokens: maybe(whole), cached_tokens: maybe(whole) },
  ...{ cost_usd: maybe(number), prompt_token_ids: maybe(ids), completion_token_ids: maybe(ids) },
  ...{ logprobs: maybe(list(number)), extra },
})
const call = object({ tool_call_id: text, function_name: text, arguments: record(anything), extra })
const ref = object({ trajectory_id: maybe(text), trajectory_path: maybe(text), session_id: maybe(text), extra })
const result = object({
  ...{ source_call_id: maybe(text), content: maybe(content) },
  ...{ subagent_trajectory_ref: maybe(list(ref)), extra },
})
const step = object({
  ...{ step_id: whole, timestamp: maybe(text), source: oneOf('system', 'user', 'agent'), message: content },
  ...{ model_name: maybe(text), reasoning_effort: maybe(effort), reasoning_content: maybe(text) },
  ...{ tool_calls: maybe(list(call)), observation: maybe(object({ results: list(result) })), metrics: maybe(metrics) },
  ...{ llm_call_count: maybe(whole), is_copied_context: maybe(flag), extra },
})
const agent = object({
  ...{ name: text, version: text, model_name: maybe(text) },
  ...{ tool_definitions: maybe(list(record(anything))), extra },
})
const final = record(anything)
const root = object({
  ...{ schema_version: text, session_id: maybe(text), trajectory_id: maybe(text), agent, steps: list(step) },
  ...{ notes: maybe(text), final_metrics: maybe(final), continued_trajectory_ref: maybe(text), extra },
  subagent_trajectories: maybe(list(anything)),
})

/** Returns the problems of an ATIF document, each with its path; an empty list if there are none. */
export function checkAtif(value: unknown, place = '', level = 0): string[] {
  const wrong: string[] = []
  const at = (field: string) => (place === '' ? field : `${place}.${field}`)
  root(value, place, (words) => wrong.push(words))
  if (wrong.length > 0) return wrong
  const { schema_version: version, steps, subagent_trajectories: inside = [] } = value as AtifTrajectory
  if (!/^ATIF-v1\.\d{1,3}$/.test(version))
    wrong.push(`\`${at('schema_version')}\` must be 'ATIF-v1.7' or another v1 version`)
  if (steps.length === 0) wrong.push(`\`${at('steps')}\` must have at least one step`)
  for (const [index, one] of steps.entries()) wrong.push(...checkStep(one, index, at(`steps[${index}]`)))
  if (inside.length > 0 && level === MOST_LEVELS)
    return [`\`${place}\` has sub-agents nested more than ${MOST_LEVELS} levels deep`]
  const seen = new Set<string>()
  for (const [index, sub] of inside.entries()) {
    const where = at(`subagent_trajectories[${index}]`)
    const broken = checkAtif(sub, where, level + 1)
    wrong.push(...broken)
    if (broken.length > 0) continue
    const { trajectory_id: id } = sub
    if (id === undefined) wrong.push(`\`${where}\` must have a trajectory_id`)
    else if (seen.has(id)) wrong.push(`\`${where}.trajectory_id\` is already used by another sub-agent`)
    else seen.add(id)
  }
  return wrong
}

function* checkStep(step: AtifStep, index: number, place: string): Generator<string> {
  const { step_id: id, source, llm_call_count: calls, metrics, reasoning_content: reasoning } = step
  if (id !== index + 1) yield `\`${place}.step_id\` must be ${index + 1}: steps are numbered from 1`
  if (source !== 'agent')
    for (const field of AGENT_ONLY)
      if (step[field] !== undefined) yield `\`${place}.${field}\` is allowed only in steps of the agent`
  if (source === 'agent' && calls === 0 && (metrics !== undefined || reasoning !== undefined))
    yield `\`${place}\` called no model (llm_call_count is 0), but has metrics or reasoning_content`
  const known = new Set((step.tool_calls ?? []).map(({ tool_call_id: call }) => call))
  for (const [at, { source_call_id: call }] of (step.observation?.results ?? []).entries())
    if (call !== undefined && !known.has(call))
      yield `\`${place}.observation.results[${at}].source_call_id\` does not match any call of that step`
  const { completion_token_ids: ids, logprobs } = metrics ?? {}
  if (ids && logprobs && ids.length !== logprobs.length)
    yield `\`${place}.metrics\` has ${logprobs.length} logprobs for ${ids.length} completion_token_ids`
}

/** Fields whose content belongs to users: nulls in them stay. In other fields of the format, null means missing. */
const FREE = new Set(['extra', 'arguments', 'tool_definitions'])

export function withoutNulls(value: unknown, level = 0): unknown {
  // `checkAtif` refuses deeper documents.
  if (typeof value !== 'object' || value === null || level > 8 * MOST_LEVELS) return value
  if (Array.isArray(value)) return value.map((one) => withoutNulls(one, level + 1))
  const entries = Object.entries(value).filter(([, one]) => one !== null)
  return Object.fromEntries(entries.map(([key, one]) => [key, FREE.has(key) ? one : withoutNulls(one, level + 1)]))
}

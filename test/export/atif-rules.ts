/** The rules of ATIF v1.7, written down from its description and not from our code: what is wrong with a document. */

type Fields = Record<string, unknown>

const ROOT = [
  ...['schema_version', 'session_id', 'trajectory_id', 'agent', 'steps', 'notes', 'final_metrics'],
  ...['continued_trajectory_ref', 'extra', 'subagent_trajectories'],
]
const AGENT = ['name', 'version', 'model_name', 'tool_definitions', 'extra']
const STEP = [
  ...['step_id', 'timestamp', 'source', 'model_name', 'reasoning_effort', 'message', 'reasoning_content', 'tool_calls'],
  ...['observation', 'metrics', 'llm_call_count', 'is_copied_context', 'extra'],
]
const CALL = ['tool_call_id', 'function_name', 'arguments', 'extra']
const RESULT = ['source_call_id', 'content', 'subagent_trajectory_ref', 'extra']
const METRICS = [
  ...['prompt_tokens', 'completion_tokens', 'cached_tokens', 'cost_usd', 'prompt_token_ids', 'completion_token_ids'],
  ...['logprobs', 'extra'],
]
const FINAL = [
  ...[
    'total_prompt_tokens',
    'total_completion_tokens',
    'total_cached_tokens',
    'total_cost_usd',
    'total_steps',
    'extra',
  ],
]
const AGENT_ONLY = ['model_name', 'reasoning_effort', 'reasoning_content', 'tool_calls', 'metrics']

export function brokenRules(document: Fields): string[] {
  const broken: string[] = []
  const only = (value: Fields, known: readonly string[], what: string) => {
    for (const key of Object.keys(value)) if (!known.includes(key)) broken.push(`${what} has a field '${key}'`)
  }
  const must = (isTrue: boolean, words: string) => {
    if (!isTrue) broken.push(words)
  }
  only(document, ROOT, 'the root')
  must(document.schema_version === 'ATIF-v1.7', 'schema_version')
  const agent = document.agent as Fields
  only(agent, AGENT, 'the agent')
  must(typeof agent.name === 'string' && typeof agent.version === 'string', 'agent name and version')
  if (document.final_metrics) only(document.final_metrics as Fields, FINAL, 'final_metrics')
  const steps = document.steps as Fields[]
  must(steps.length > 0, 'there are steps')
  for (const [index, step] of steps.entries()) {
    const at = `step ${index + 1}`
    only(step, STEP, at)
    must(step.step_id === index + 1, `${at} has the id ${step.step_id}`)
    must(['system', 'user', 'agent'].includes(step.source as string), `${at} source`)
    must(typeof step.message === 'string' || Array.isArray(step.message), `${at} message`)
    if (step.source !== 'agent') for (const field of AGENT_ONLY) must(!(field in step), `${at} has ${field}`)
    if (step.llm_call_count === 0) must(!step.metrics && !step.reasoning_content, `${at} asked no model`)
    const calls = (step.tool_calls ?? []) as Fields[]
    for (const call of calls) {
      only(call, CALL, `a call of ${at}`)
      must(Object.prototype.toString.call(call.arguments) === '[object Object]', `${at} arguments`)
    }
    for (const result of ((step.observation as Fields | undefined)?.results ?? []) as Fields[]) {
      only(result, RESULT, `a result of ${at}`)
      const { source_call_id: id, content } = result
      must(id === undefined || calls.some((call) => call.tool_call_id === id), `${at}: no call ${id}`)
      must(content === undefined || typeof content === 'string' || Array.isArray(content), `${at} content`)
    }
    const metrics = (step.metrics ?? {}) as Fields
    only(metrics, METRICS, `the metrics of ${at}`)
    for (const key of ['prompt_tokens', 'completion_tokens', 'cached_tokens'])
      must(metrics[key] === undefined || Number.isInteger(metrics[key]), `${at} ${key}`)
    const [ids, logProbs] = [metrics.completion_token_ids, metrics.logprobs] as (number[] | undefined)[]
    if (logProbs) must(logProbs.length === ids?.length && logProbs.every(Number.isFinite), `${at} logprobs`)
  }
  const inside = (document.subagent_trajectories ?? []) as Fields[]
  const ids = inside.map(({ trajectory_id: id }) => id)
  must(ids.every((id) => typeof id === 'string') && new Set(ids).size === ids.length, 'ids of sub-agents')
  return [...broken, ...inside.flatMap(brokenRules)]
}

import type { TaskResponse } from '../../../task.ts'

/** The columns of a response, if no `row` is given. */
const TYPES = {
  ...{ id: 'string', agent: 'string', success: 'boolean', status: 'string', answer: 'string' },
  ...{ error_code: 'string', error_message: 'string', attempts: 'int', queued_ms: 'double', run_ms: 'double' },
  ...{ worker: 'string', input_tokens: 'bigint', output_tokens: 'bigint', cost_usd: 'double' },
}

export const RESPONSE_COLUMNS: readonly string[] = Object.keys(TYPES)
export const RESPONSE_SCHEMA: string = Object.entries(TYPES)
  .map(([name, type]) => `${name} ${type}`)
  .join(', ')

/** The answer is not converted here: that depends on the type of its column. */
export const responseRow = (response: TaskResponse): Record<keyof typeof TYPES, unknown> => ({
  id: response.id,
  agent: response.agentName,
  success: response.success,
  status: response.status,
  answer: response.answer,
  error_code: response.error?.code,
  error_message: response.error?.message,
  attempts: response.attempts,
  queued_ms: response.timing.queuedMs,
  run_ms: response.timing.runMs,
  worker: response.worker?.id,
  input_tokens: response.usage.inputTokens,
  output_tokens: response.usage.outputTokens,
  cost_usd: response.usage.costUsd,
})

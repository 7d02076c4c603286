import type { TaskResponse } from '../task.ts'
import type { Redactor } from './redactor.ts'

/** A response for printing, without secrets. The program itself gets the original answer. */
export function shownResponse(response: TaskResponse, redactor: Redactor | undefined): TaskResponse {
  if (redactor === undefined || !response.success) return response
  const answer = redactor.value(response.answer)
  if (Object.is(answer, response.answer)) return response
  return Object.create(response, { answer: { value: answer, enumerable: true } }) as TaskResponse
}

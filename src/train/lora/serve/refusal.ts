/** An HTTP error response: a status and a message. */
export class Refusal extends Error {
  readonly status: number
  readonly type: string

  constructor(status: number, message: string, type: string = typeOf(status)) {
    super(message)
    this.name = 'Refusal'
    this.status = status
    this.type = type
  }
}

/** OpenAI's error types. */
function typeOf(status: number): string {
  if (status === 401) return 'authentication_error'
  if (status === 404) return 'not_found_error'
  if (status === 429) return 'rate_limit_error'
  return status < 500 ? 'invalid_request_error' : 'server_error'
}

export function refuse(message: string): never {
  throw new Refusal(400, message)
}

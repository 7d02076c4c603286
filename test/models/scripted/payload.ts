/** An answer as bytes: whole, or piece by piece. */
export interface Payload {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly chunks: readonly string[]
}

const JSON_TYPE = { 'content-type': 'application/json' }

export const jsonPayload = (
  status: number,
  value: unknown,
  headers: Readonly<Record<string, string>> = {},
): Payload => ({
  status,
  headers: { ...JSON_TYPE, ...headers },
  chunks: [JSON.stringify(value)],
})

/** An error as OpenAI's servers send it. */
export const errorPayload = (
  status: number,
  message: string,
  code: string | null = null,
  headers: Readonly<Record<string, string>> = {},
): Payload => {
  const type = status === 429 ? 'rate_limit_error' : status < 500 ? 'invalid_request_error' : 'server_error'
  return jsonPayload(status, { error: { message, type, param: null, code } }, headers)
}

/** In so many pieces, if it is one. */
export function inPieces(payload: Payload, count: number): Payload {
  if (payload.chunks.length > 1) return payload
  const text = payload.chunks.join('')
  const size = Math.max(1, Math.ceil(text.length / count))
  const chunks: string[] = []
  for (let at = 0; at < text.length; at += size) chunks.push(text.slice(at, at + size))
  return { ...payload, chunks }
}

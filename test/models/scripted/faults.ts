import { errorPayload, jsonPayload, type Payload } from './payload.ts'

/** How an answer goes wrong: another answer in its place, or an end that is not one. */
export type Fault =
  | { readonly kind: 'instead'; readonly payload: Payload }
  | { readonly kind: 'ending'; readonly at: 'headers' | 'body'; readonly how: Ending; readonly sized?: boolean }
  /** In a stream: an error event after a few others. Without a stream: an error with status 200. */
  | { readonly kind: 'stream-error' }

/** `cut`: the connection is closed, `reset`: with RST; `hang`: nothing more comes; `eof`: a clean end of what was sent so far. */
export type Ending = 'cut' | 'reset' | 'hang' | 'eof'

/** Told what stands behind its count: which header a 429 has. */
type MakeFault = (detail: string | undefined) => Fault

const instead = (payload: Payload): Fault => ({ kind: 'instead', payload })
const raw = (status: number, type: string, text: string): Fault =>
  instead({ status, headers: { 'content-type': type }, chunks: [text] })

/** `after=2`: seconds; `after-ms=50`; `after-date=2`: the same as a date. */
function retryAfter(detail: string): Record<string, string> {
  const [name, value = '1'] = detail.split('=')
  if (name === 'after') return { 'retry-after': value }
  if (name === 'after-ms') return { 'retry-after-ms': value }
  if (name === 'after-date') return { 'retry-after': new Date(Date.now() + Number(value) * 1000).toUTCString() }
  throw new Error(`a 429 has after=, after-ms= or after-date=, not ${detail}`)
}

/** Without a count, these happen to every request: trying again does not help. */
const PERMANENT: Readonly<Record<string, MakeFault>> = {
  400: () => instead(errorPayload(400, 'the request is not valid')),
  401: () => instead(errorPayload(401, 'Incorrect API key provided', 'invalid_api_key')),
  403: () => instead(errorPayload(403, 'this key may not use the model')),
  404: () => instead(errorPayload(404, 'The model does not exist', 'model_not_found')),
  context: () =>
    instead(
      errorPayload(
        400,
        "This model's maximum context length is 4096 tokens. However, your messages resulted in 5031 tokens.",
        'context_length_exceeded',
      ),
    ),
  /** As llama.cpp says it. */
  'context-llama': () => {
    const message = 'request (5031 tokens) exceeds the available context size (2048 tokens), try increasing it'
    const error = { code: 400, message, type: 'exceed_context_size_error', n_prompt_tokens: 5031, n_ctx: 2048 }
    return instead(jsonPayload(400, { error }))
  },
  'filter-400': () =>
    instead(errorPayload(400, 'The response was filtered due to the content policy', 'content_filter')),
}

/** Without a count, these happen once. */
const PASSING: Readonly<Record<string, MakeFault>> = {
  408: () => instead(errorPayload(408, 'request timeout')),
  429: (detail) =>
    instead(
      errorPayload(429, 'Rate limit reached', 'rate_limit_exceeded', detail === undefined ? {} : retryAfter(detail)),
    ),
  500: () => instead(errorPayload(500, 'the server had an error')),
  503: () => instead(errorPayload(503, 'the server is overloaded')),
  html: () => raw(502, 'text/html', '<html><body><h1>502 Bad Gateway</h1></body></html>'),
  'html-200': () => raw(200, 'text/html', '<html><body>Log in to the network</body></html>'),
  garbage: () => raw(200, 'application/json', '{"id": "x", "choices": ['),
  empty: () => raw(200, 'application/json', ''),
  cut: () => ({ kind: 'ending', at: 'headers', how: 'cut' }),
  reset: () => ({ kind: 'ending', at: 'headers', how: 'reset' }),
  hang: () => ({ kind: 'ending', at: 'headers', how: 'hang' }),
  'cut-body': () => ({ kind: 'ending', at: 'body', how: 'cut' }),
  'reset-body': () => ({ kind: 'ending', at: 'body', how: 'reset' }),
  'hang-body': () => ({ kind: 'ending', at: 'body', how: 'hang' }),
  /** Its content-length is that of the whole answer. */
  half: () => ({ kind: 'ending', at: 'body', how: 'cut', sized: true }),
  /** Of a stream: without `[DONE]`. */
  eof: () => ({ kind: 'ending', at: 'body', how: 'eof' }),
  'stream-error': () => ({ kind: 'stream-error' }),
}

export const FAULTS: ReadonlySet<string> = new Set([...Object.keys(PERMANENT), ...Object.keys(PASSING)])

/** `500:2`: for the first two of the requests that are `left`, counted from 0. */
export function faultOf(
  name: string,
  count: string | undefined,
  detail: string | undefined,
  left: number,
): { readonly fault: Fault | undefined; readonly times: number } {
  const times = count === undefined || count === '' ? (name in PERMANENT ? Number.POSITIVE_INFINITY : 1) : Number(count)
  return { times, fault: left < times ? (PERMANENT[name] ?? PASSING[name])!(detail) : undefined }
}

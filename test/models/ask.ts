/** Calls to a model server by fetch alone, for tests of the servers themselves. */

const CALL_MS = 20_000

export const post = (url: string, path: string, body: unknown, init: RequestInit = {}): Promise<Response> =>
  fetch(`${url}${path}`, {
    method: 'POST',
    body: typeof body === 'string' ? body : JSON.stringify(body),
    signal: AbortSignal.timeout(CALL_MS),
    ...init,
  })

/** What was said in a stream, event by event. */
export const eventsOf = (text: string): string[] =>
  text
    .split('\n\n')
    .filter((event) => event !== '')
    .map((event) => event.replace(/^data: /, ''))

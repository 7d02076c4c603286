import { setTimeout as sleep } from 'node:timers/promises'
import { newToken } from '../network/token.ts'
import { Place } from './read/place.ts'
import { keepMemorySmall, serveViewer } from './serve.ts'

/**
 * The viewer of `--view`. It runs in its own process, because reading a large run must not slow down its driver. It is
 * started with `fork`, and ends with the process that started it.
 */

/** What to show. */
export interface ShowRequest {
  /** The store, which may not exist yet. */
  readonly file: string
  /** The run or training to wait for. */
  readonly id: string
  readonly kind: 'run' | 'training'
  readonly route: string
}

/** The address of the viewer, and that for a browser that is opened now; or why it could not be started. */
export type ShowAnswer = { readonly url: string; readonly codeUrl: string } | { readonly error: string }

/** A run is written to its store a moment after it has started. */
const WAIT_MS = 10_000
const LOOK_MS = 50

keepMemorySmall()
// Ctrl-C in a terminal is sent to all its processes. The driver decides when this one ends.
process.on('SIGINT', () => {})
process.on('SIGTERM', () => {})
process.on('disconnect', () => process.exit())
process.on('message', (request: ShowRequest) => {
  void show(request).then(answer, (error: Error) => answer({ error: error.message }))
})

async function show({ file, id, kind, route }: ShowRequest): Promise<ShowAnswer> {
  const place = Place.file(file)
  for (const until = Date.now() + WAIT_MS; Date.now() < until && !exists(place, kind, id); ) await sleep(LOOK_MS)
  const server = await serveViewer({ place, route, host: '127.0.0.1', port: 0, token: newToken() })
  return { url: server.url, codeUrl: server.codeUrl() }
}

function exists(place: Place, kind: ShowRequest['kind'], id: string): boolean {
  try {
    return (kind === 'run' ? place.run(id) : place.training(id)) !== undefined
  } catch {
    return false
  }
}

const answer = (told: ShowAnswer) => void process.send?.(told)

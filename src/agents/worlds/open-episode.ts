// Loaded with the worlds, outside of all tasks: it remembers where it was loaded.
import './outside-tasks.ts'
import type { PythonEpisode } from './python-episode.ts'
import type { PythonPlace } from './world-server.ts'

/** What serves Python worlds is loaded when it is needed: lock files and all. */
async function load() {
  const [{ PythonEpisode }, { worldServer }] = await Promise.all([
    import('./python-episode.ts'),
    import('./world-server.ts'),
  ])
  return { PythonEpisode, worldServer }
}

/** Makes the Python environment, and starts its process. */
export async function makeReady(place: PythonPlace): Promise<void> {
  const { worldServer } = await load()
  await worldServer(place).ready()
}

/** An episode after its reset; `first` is what Python answered to that. */
export async function openEpisode(
  place: PythonPlace,
  name: string,
  limitMs: number,
  reset: string,
  log: (line: string) => void,
): Promise<{ readonly python: PythonEpisode; readonly first: string }> {
  const { PythonEpisode, worldServer } = await load()
  const python = new PythonEpisode(worldServer(place), name, limitMs, log)
  try {
    return { python, first: await python.reset(reset) }
  } catch (error) {
    python.close()
    throw error
  }
}

// Import this statically, outside of all tasks: it captures the async context of the import.
import './outside-tasks.ts'
import type { PythonEpisode } from './python-episode.ts'
import type { PythonRuntime } from './world-server.ts'

/** Loads the code for Python worlds only when it is needed, including the lock files. */
async function load() {
  const [{ PythonEpisode }, { worldServer }] = await Promise.all([
    import('./python-episode.ts'),
    import('./world-server.ts'),
  ])
  return { PythonEpisode, worldServer }
}

/** Creates the Python environment and starts its process. */
export async function makeReady(runtime: PythonRuntime): Promise<void> {
  const { worldServer } = await load()
  await worldServer(runtime).ready()
}

/** Starts an episode. `first` is Python's answer to the reset. */
export async function openEpisode(
  runtime: PythonRuntime,
  name: string,
  limitMs: number,
  reset: string,
  log: (line: string) => void,
): Promise<{ readonly python: PythonEpisode; readonly first: string }> {
  const { PythonEpisode, worldServer } = await load()
  const python = new PythonEpisode(worldServer(runtime), name, limitMs, log)
  try {
    return { python, first: await python.reset(reset) }
  } catch (error) {
    python.close()
    throw error
  }
}

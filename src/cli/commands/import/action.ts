import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { readTrajectories } from '../../../import/read-file.ts'
import { runFolder, runIn } from '../../../store/find-run.ts'
import { importTrajectories } from '../../../store/import-trajectories.ts'
import { newRunId, sharedStore } from '../../../store/run-path.ts'
import { escapeControls } from '../../../text/escape-controls.ts'
import { count } from '../../../text/quantities.ts'
import { say } from '../../../text/say.ts'
import { stopSignal } from '../../frame/stop-signal.ts'
import { UsageError } from '../../frame/usage-error.ts'
import type { ImportArgs } from './spec.ts'

/** The same characters as in `runId` of a run configuration. */
const RUN_ID = /^[A-Za-z0-9][\w.-]{0,127}$/

/** Makes a run from trajectories of other programs. */
export async function run({ file, dir, format, runId = newRunId() }: ImportArgs): Promise<number> {
  if (!RUN_ID.test(runId))
    throw new UsageError(
      '--run-id must start with a letter or digit and have at most 128 letters, digits, ".", "_" and "-"',
    )
  const store = sharedStore(runFolder(dir))
  if (existsSync(store) && runIn(store, runId))
    throw new UsageError(`run '${runId}' already exists in ${store}; give another --run-id`)
  const stop = stopSignal()
  try {
    // Check all trajectories before the first one is written.
    for await (const _ of readTrajectories(file, format)) stop.signal.throwIfAborted()
    const trajectories = readTrajectories(file, format)
    const options = { runId, source: resolve(file), signal: stop.signal }
    const written = await importTrajectories({ path: store, shared: true }, trajectories, options)
    const noun = written === 1 ? 'trajectory' : 'trajectories'
    process.stderr.write(
      escapeControls(`imported ${count(written)} ${noun} from ${file} as run ${runId} of ${store}\n`),
    )
    return 0
  } catch (error) {
    const code = stop.code()
    if (code === undefined) throw error
    say('interrupted; nothing was imported')
    return code
  }
}

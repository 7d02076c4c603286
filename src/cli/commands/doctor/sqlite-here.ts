import { join } from 'node:path'
import { escapeControls } from '../../../text/escape-controls.ts'

/** Why SQLite cannot keep a run file in this folder, for example on a network disk. Undefined if it can. */
export async function whyNotHere(folder: string): Promise<string | undefined> {
  silenceExperimentalWarnings()
  // Imported here, because an old Node does not have it, and `doctor` must be able to report that.
  const sqlite = await import('node:sqlite').catch(() => undefined)
  if (sqlite === undefined) return undefined
  const db = new sqlite.DatabaseSync(join(folder, 'trial.sqlite'))
  try {
    const { journal_mode: mode } = db.prepare('PRAGMA journal_mode = WAL').get() as { journal_mode: string }
    db.exec('CREATE TABLE trial (a); INSERT INTO trial VALUES (1)')
    return mode === 'wal' ? undefined : `SQLite cannot use its write-ahead log here (journal_mode is "${mode}")`
  } finally {
    db.close()
  }
}

/** Node 22 prints an ExperimentalWarning about SQLite to stderr, in the middle of our table. */
function silenceExperimentalWarnings(): void {
  process.removeAllListeners('warning')
  process.on('warning', (warning) => {
    if (warning.name !== 'ExperimentalWarning') process.stderr.write(`${escapeControls(String(warning.stack))}\n`)
  })
}

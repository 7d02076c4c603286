import { join } from 'node:path'
import { escapeControls } from '../../../text/escape-controls.ts'

/** Why SQLite cannot keep a run file in this folder: a network disk, say. Nothing if it can. */
export async function whyNotHere(folder: string): Promise<string | undefined> {
  silenceExperimentalWarnings()
  // Not at the top: an old Node, which doctor is to report, does not have it.
  const sqlite = await import('node:sqlite').catch(() => undefined)
  if (sqlite === undefined) return undefined
  const db = new sqlite.DatabaseSync(join(folder, 'trial.sqlite'))
  try {
    const { journal_mode: mode } = db.prepare('PRAGMA journal_mode = WAL').get() as { journal_mode: string }
    db.exec('CREATE TABLE trial (a); INSERT INTO trial VALUES (1)')
    return mode === 'wal' ? undefined : `SQLite cannot use its write-ahead log here (it says "${mode}")`
  } finally {
    db.close()
  }
}

/** Node 22 calls SQLite experimental on stderr, in the middle of our table. */
function silenceExperimentalWarnings(): void {
  process.removeAllListeners('warning')
  process.on('warning', (warning) => {
    if (warning.name !== 'ExperimentalWarning') process.stderr.write(`${escapeControls(String(warning.stack))}\n`)
  })
}

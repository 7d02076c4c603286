import type sqlite from 'node:sqlite'

/** SQLite of Node itself. Node 22 calls it experimental on stderr, whenever it is first used; users can do nothing about that. */
export const { DatabaseSync } = load()
export type DatabaseSync = sqlite.DatabaseSync

function load(): typeof sqlite {
  const { emitWarning } = process
  process.emitWarning = () => {}
  try {
    return process.getBuiltinModule('node:sqlite')
  } finally {
    process.emitWarning = emitWarning
  }
}

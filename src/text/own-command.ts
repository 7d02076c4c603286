import { accessSync, constants } from 'node:fs'
import { delimiter, dirname, join, relative, sep } from 'node:path'
import { defaultStore, isSharedStore, runLocation } from '../store/run-path.ts'
import { escapeControls } from './escape-controls.ts'

const MAIN = join(import.meta.dirname, '..', 'cli', `main${import.meta.filename.slice(-3)}`)

/** The words with which the user can call this program from the current folder. */
export function ownCommand(): string[] {
  // npm adds the project's programs to the PATH of its scripts, but not to that of the user's shell.
  if (process.env.npm_command !== undefined) return ['npx', 'manyworlds']
  const onPath = (process.env.PATH ?? '').split(delimiter).some((folder) => isExecutable(join(folder, 'manyworlds')))
  if (onPath) return ['manyworlds']
  return MAIN.includes(`${sep}node_modules${sep}`) ? ['npx', 'manyworlds'] : ['node', relative(process.cwd(), MAIN)]
}

/** The name of a run on the command line: its id, with a path if it is not in the default folder. */
export function runArgument(runId: string, file: string): string {
  const store = defaultStore()
  if (store !== false && runLocation(store, runId).path === file) return runId
  return relative(process.cwd(), isSharedStore(file) ? join(dirname(file), runId) : file)
}

/** Quotes a text as one word for a shell: for example, `#3` would start a comment. */
export const shellWord = (text: string): string =>
  /^[\w./:@%+=,-]+$/.test(text) ? text : `'${escapeControls(text).replaceAll("'", `'\\''`)}'`

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}

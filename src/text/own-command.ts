import { accessSync, constants } from 'node:fs'
import { delimiter, dirname, join, relative, sep } from 'node:path'
import { defaultStore, isSharedStore, runLocation } from '../store/run-path.ts'
import { escapeControls } from './escape-controls.ts'

const MAIN = join(import.meta.dirname, '..', 'cli', `main${import.meta.filename.slice(-3)}`)

/** How this program can be called from where the user is, as the first words of a command. */
export function ownCommand(): string[] {
  // npm puts programs of the project on the PATH of what it starts, and not on that of the shell behind it.
  if (process.env.npm_command !== undefined) return ['npx', 'manyworlds']
  const onPath = (process.env.PATH ?? '').split(delimiter).some((folder) => isExecutable(join(folder, 'manyworlds')))
  if (onPath) return ['manyworlds']
  return MAIN.includes(`${sep}node_modules${sep}`) ? ['npx', 'manyworlds'] : ['node', relative(process.cwd(), MAIN)]
}

/** What to call a run on the command line: its id, with a path if it is not where runs are looked for. */
export function runArgument(runId: string, file: string): string {
  const store = defaultStore()
  if (store !== false && runLocation(store, runId).path === file) return runId
  return relative(process.cwd(), isSharedStore(file) ? join(dirname(file), runId) : file)
}

/** As one word of a command that can be copied into a shell: `#3` would be a comment there. */
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

import { accessSync, constants } from 'node:fs'
import { delimiter, join, relative } from 'node:path'
import { shellWord } from '../../text/shell-word.ts'

const VALUED = ['--run-id', '--resume']
const FLAGS = ['--retry-failed']

/** What to type to go on with a run: the same words, and the run. */
export function resumeCommand(words: readonly string[], runId: string): string {
  const dashes = words.indexOf('--')
  const ours = dashes < 0 ? words : words.slice(0, dashes)
  const kept: string[] = []
  for (let i = 0; i < ours.length; i++) {
    const [flag = '', value] = ours[i]!.split('=', 2)
    if (VALUED.includes(flag)) i += value === undefined ? 1 : 0
    else if (!FLAGS.includes(flag)) kept.push(ours[i]!)
  }
  const rest = dashes < 0 ? [] : words.slice(dashes)
  return [...ownName(), ...kept, '--resume', runId, ...rest].map(shellWord).join(' ')
}

/** How this program can be called from where the user is. */
function ownName(): string[] {
  if (process.env.npm_command === 'exec') return ['npx', 'manyworlds']
  const onPath = (process.env.PATH ?? '').split(delimiter).some((folder) => isExecutable(join(folder, 'manyworlds')))
  return onPath
    ? ['manyworlds']
    : ['node', relative(process.cwd(), import.meta.filename.replace(/run.resume-command/, 'main'))]
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}

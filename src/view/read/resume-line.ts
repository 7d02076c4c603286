import { basename } from 'node:path'
import { shellWord } from '../../text/own-command.ts'

/**
 * The command line that resumes a run: that of its last session which `manyworlds run` started, with all of its options. If
 * there is none, `node` ran the script, which then has all options itself. Undefined if the script is unknown.
 */
export function resumeLine(
  { runId, script }: { readonly runId: string; readonly script?: string | undefined },
  configs: readonly unknown[],
): string | undefined {
  const ofScript = script === undefined ? undefined : ['run', basename(script)]
  const words = configs.map(commandOf).findLast((command) => command !== undefined) ?? ofScript
  if (words === undefined) return undefined
  const dashes = words.indexOf('--')
  const end = dashes < 0 ? words.length : dashes
  return ['npx', 'manyworlds', ...words.slice(0, end), '--resume', runId, ...words.slice(end)].map(shellWord).join(' ')
}

function commandOf(config: unknown): readonly string[] | undefined {
  const command = (config as { command?: unknown } | null)?.command
  return Array.isArray(command) && command.every((word) => typeof word === 'string') ? command : undefined
}

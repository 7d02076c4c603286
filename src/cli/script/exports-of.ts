import { basename } from 'node:path'
import { pathToFileURL } from 'node:url'
import { type RunHost, setRunHost } from '../../runners/run-host.ts'
import { say } from '../../text/say.ts'
import { UsageError } from '../frame/usage-error.ts'

const nothing = () => {}

/**
 * Makes runs of this command, which it knows by their ids. All other runs are made by the user's file when it is imported, or
 * later by a main() in it: these are refused, because the command was not asked for them and they may cost money.
 */
export function onlyOwnRuns(file: string, own: ReadonlySet<string>, host: Partial<RunHost> = {}): void {
  setRunHost({
    configure: (config) => {
      if (own.has(config.runId ?? '')) return config
      throw new UsageError(
        `${basename(file)} makes a run or a training when it is imported, but this command needs only its exports; put them into a module of their own, or guard the run with \`if (import.meta.main)\` and start it with node`,
      )
    },
    observe: () => ({ response: nothing, retry: nothing, total: nothing, notice: say, end: nothing }),
    started: nothing,
    ended: () => false,
    ...host,
  })
}

/** Imports a file for its exports. It may take any time, but its top-level code must finish. */
export async function exportsOf(file: string): Promise<Record<string, unknown>> {
  const idle = new Promise<'idle'>((done) => process.once('beforeExit', () => done('idle')))
  const loaded = await Promise.race([import(pathToFileURL(file).href), idle])
  if (loaded === 'idle') throw new UsageError(`${file}: a top-level await never settled and the event loop is empty`)
  return loaded as Record<string, unknown>
}

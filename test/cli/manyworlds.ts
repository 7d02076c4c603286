import { mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { onTestFinished } from 'vitest'
import { type Ended, runScript } from '../support/run-script.ts'

/** The program as it is installed. */
export const MAIN = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url))

/** Runs `manyworlds` with these words. */
export const manyworlds = (words: readonly string[], options: Parameters<typeof runScript>[1] = {}): Promise<Ended> =>
  runScript(MAIN, { ...options, args: words })

/** A folder that is removed after the test. */
export function newFolder(): string {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'manyworlds-cli-')))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true, maxRetries: 3 }))
  return folder
}

/** A folder with these shell scripts in it, to be put on a PATH. */
export function programs(scripts: Readonly<Record<string, string>>): string {
  const folder = newFolder()
  for (const [name, script] of Object.entries(scripts))
    writeFileSync(join(folder, name), `#!/bin/sh\n${script}\n`, { mode: 0o755 })
  return folder
}

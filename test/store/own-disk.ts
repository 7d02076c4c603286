import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmdirSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { it, onTestFinished } from 'vitest'

const mayMount = process.getuid?.() === 0 && process.platform === 'linux'
if (!mayMount) console.warn('tests with a disk of their own need the right to mount (root on Linux): they are skipped')

/** For tests that use `ownDisk`. On CI they are not skipped: there they must be possible. */
export const itMounts = it.skipIf(!mayMount && process.env.CI !== 'true')

/** A disk of its own in memory, for one test: small, or read-only. Needs the right to mount. */
export function ownDisk(options: string, then?: 'ro', prepare?: (path: string) => void): { readonly path: string } {
  const path = mkdtempSync(join(tmpdir(), 'manyworlds-disk-'))
  const mount = (...args: string[]) => {
    const { status, stderr } = spawnSync('mount', args, { encoding: 'utf8' })
    if (status !== 0) throw new Error(`mount ${args.join(' ')}: ${stderr}`)
  }
  mount('-t', 'tmpfs', '-o', options, 'manyworlds-test', path)
  onTestFinished(() => {
    spawnSync('umount', ['--lazy', path])
    rmdirSync(path)
  })
  prepare?.(path)
  if (then === 'ro') mount('-o', 'remount,ro', path)
  return { path }
}

import { execFileSync } from 'node:child_process'
import { globSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'

const TRY_MS = 20_000

/**
 * A Python 3.12 of this machine: on the PATH, or of pyenv, whose programs on the PATH run only if they are switched on. Else uv is asked
 * for one, which may have to download it.
 */
export function findPython312(): string {
  const pyenv = join(process.env.PYENV_ROOT ?? join(homedir(), '.pyenv'), 'versions', '3.12.*', 'bin', 'python3.12')
  return ['python3.12', ...globSync(pyenv).sort()].find(runs) ?? '3.12'
}

function runs(python: string): boolean {
  try {
    execFileSync(python, ['-c', 'import venv'], { timeout: TRY_MS, stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

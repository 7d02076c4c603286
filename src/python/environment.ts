import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { ManyworldsError } from '../errors.ts'
import { isAlive } from '../is-alive.ts'
import { cacheFolder, isPrivateFolder } from '../private-folder.ts'
import { pythonFolder } from './base-folder.ts'
import { carriedFile } from './carried-file.ts'
import { type Lock, shortHash } from './lock.ts'

/** A Python environment that an engine or an environment needs. */
export interface PythonEnvSpec {
  /** For messages: `Ray 2.60.0`. */
  readonly title: string
  /** The name of its folder. */
  readonly folder: string
  /** Requirements in pip's format. */
  readonly packages: readonly string[]
  /** `3.11` */
  readonly python: string
  /** The locked packages. Undefined for versions without a lock file, such as one that only a cluster uses. */
  readonly lock: Lock | undefined
  /** Additional requirements in pip's format, in versions compatible with the locked ones. */
  readonly more?: readonly string[]
  /** False: install the packages without their dependencies, if those are not needed. */
  readonly dependencies?: boolean
  /** Additional options of `uv pip install`, for environments without a lock. */
  readonly installOptions?: readonly string[]
}

/** Written when an environment is complete. */
const COMPLETE = '.complete'
const OUTPUT_CHARS = 4000

/** Enough for a gigabyte over a slow connection. */
const INSTALL_MS = 30 * 60_000

const base = () => cacheFolder('python')

/**
 * The name includes the hashes of the lock and of additional packages, so that other installations are not affected.
 */
export function environmentFolder({
  folder,
  lock,
  more = [],
}: Pick<PythonEnvSpec, 'folder' | 'lock' | 'more'>): string {
  const also = more.length === 0 ? [] : [shortHash([...more].sort().join('\n'))]
  return join(base(), [folder, ...(lock === undefined ? [] : [lock.hash]), ...also].join('-'))
}

/** The environment's Python, if it exists. */
export function existingEnvironment(needs: PythonEnvSpec): string | undefined {
  const folder = environmentFolder(needs)
  const python = join(folder, 'bin', 'python')
  return existsSync(join(folder, COMPLETE)) && existsSync(python) && isPrivateFolder(base()) ? python : undefined
}

/**
 * The environment's Python. If it does not exist, it is created with uv in the user's cache folder; the system's Python
 * is not changed.
 */
export async function ensureEnvironment(needs: PythonEnvSpec, notice: (line: string) => void): Promise<string> {
  const ready = existingEnvironment(needs)
  if (ready !== undefined) return ready
  pythonFolder()
  return withLock(join(base(), `.${needs.folder}.lock`), needs, notice, async () => {
    const made = existingEnvironment(needs)
    if (made !== undefined) return made
    const folder = environmentFolder(needs)
    notice(`setting up Python for ${needs.title} in ${folder}; this happens once and takes about a minute`)
    const began = Date.now()
    const uv = await findUv(notice)
    rmSync(folder, { recursive: true, force: true })
    const python = join(folder, 'bin', 'python')
    try {
      await run(uv, ['venv', '--quiet', '--python', needs.python, folder], needs)
      for (const packages of whatToInstall(needs, notice))
        await run(uv, ['pip', 'install', '--quiet', '--python', python, ...packages], needs)
    } catch (error) {
      rmSync(folder, { recursive: true, force: true })
      throw error
    }
    writeFileSync(join(folder, COMPLETE), [...needs.packages, ...(needs.more ?? [])].join('\n'))
    notice(`Python for ${needs.title} is ready (${Math.round((Date.now() - began) / 1000)} s)`)
    return python
  })
}

/** The arguments of each `pip install`. */
function whatToInstall(needs: PythonEnvSpec, notice: (line: string) => void): string[][] {
  const { lock, packages, more = [], dependencies = true, installOptions = [], title } = needs
  const build = ['--build-constraints', carriedFile('build.txt').path]
  if (lock === undefined)
    notice(
      `there is no lock file for ${title}: installing ${packages.join(', ')} with the newest versions of their dependencies`,
    )
  if (more.length > 0)
    notice(`there is no lock file for ${more.join(', ')}: installing the newest versions of their dependencies`)
  const known = lock === undefined ? [] : ['--constraints', lock.path]
  const alone = dependencies ? [] : ['--no-deps']
  return [
    [
      ...alone,
      ...installOptions,
      ...(lock === undefined ? packages : ['--require-hashes', ...build, '--requirements', lock.path]),
    ],
    ...(more.length === 0 ? [] : [[...known, '--', ...more]]),
  ]
}

/** The installed uv, or our own copy beside the environments. */
export async function findUv(notice: (line: string) => void): Promise<string> {
  const installed = onPath('uv')
  if (installed !== undefined) return installed
  const lock = carriedFile('uv.txt')
  const own = environmentFolder({ folder: 'uv', lock })
  const uv = join(own, 'bin', 'uv')
  if (existsSync(join(own, COMPLETE))) return uv
  const python = onPath('python3') ?? onPath('python')
  if (python === undefined)
    throw new ManyworldsError(
      'PYTHON_MISSING',
      'neither uv nor python3 is on the PATH; install uv (https://docs.astral.sh/uv) or Python 3.11, and try again',
    )
  notice('installing uv, which creates the Python environments')
  pythonFolder()
  await run(python, ['-m', 'venv', '--clear', own], { title: 'uv' })
  const install = ['-m', 'pip', 'install', '--quiet', '--require-hashes', '--only-binary', ':all:', '-r', lock.path]
  await run(join(own, 'bin', 'python'), install, { title: 'uv' })
  writeFileSync(join(own, COMPLETE), '')
  return uv
}

export function onPath(program: string): string | undefined {
  for (const folder of (process.env.PATH ?? '').split(delimiter)) {
    const path = join(folder, program)
    try {
      if (folder !== '' && statSync(path).mode & 0o111 && statSync(path).isFile()) return path
    } catch {
      // Not here.
    }
  }
  return undefined
}

async function run(command: string, args: readonly string[], { title }: Pick<PythonEnvSpec, 'title'>): Promise<void> {
  // Use the system's certificate authorities, like pip, because uv's own do not include a company's proxy.
  const env = { UV_SYSTEM_CERTS: '1', UV_NATIVE_TLS: '1', ...process.env }
  const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'], env, timeout: INSTALL_MS })
  let output = ''
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => {
      output = (output + text).slice(-OUTPUT_CHARS)
    })
  const how = await ended(child)
  if (how === 0) return
  throw new ManyworldsError(
    'PYTHON_SETUP_FAILED',
    `cannot create the Python environment for ${title}: \`${[command, ...args].join(' ')}\` ${typeof how === 'number' ? `exited with code ${how}` : `failed (${how})`}:\n${output.trim()}`,
  )
}

const ended = (child: ChildProcess) =>
  new Promise<number | string>((resolve) => {
    child.once('error', (error) => resolve(error.message))
    child.once('exit', (code, signal) => resolve(signal ?? code ?? 1))
  })

/** If two programs need the same environment at once, one creates it and the other waits. */
async function withLock<T>(
  path: string,
  { title }: Pick<PythonEnvSpec, 'title'>,
  notice: (line: string) => void,
  body: () => Promise<T>,
): Promise<T> {
  const began = performance.now()
  let isNoticed = false
  for (;;) {
    try {
      writeFileSync(path, String(process.pid), { flag: 'wx' })
      break
    } catch (cause) {
      if ((cause as NodeJS.ErrnoException).code !== 'EEXIST')
        throw new ManyworldsError('PYTHON_SETUP_FAILED', `cannot create ${path}: ${(cause as Error).message}`, {
          cause,
        })
      const owner = readOwner(path)
      if (owner !== undefined && !isAlive(owner)) rmSync(path, { force: true })
      else if (performance.now() - began > INSTALL_MS)
        throw new ManyworldsError(
          'PYTHON_SETUP_FAILED',
          `another program (process ${owner ?? 'unknown'}) has been setting up Python for ${title} for ${INSTALL_MS / 60_000} minutes; stop it, or remove ${path}`,
        )
      else if (!isNoticed) {
        isNoticed = true
        notice(
          `waiting for another program that is setting up Python${owner === undefined ? '' : ` (process ${owner})`}`,
        )
      }
      await sleep(200)
    }
  }
  try {
    return await body()
  } finally {
    rmSync(path, { force: true })
  }
}

function readOwner(path: string): number | undefined {
  try {
    return Number(readFileSync(path, 'utf8')) || undefined
  } catch {
    return undefined
  }
}

import { execFile } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { mkdir, mkdtemp, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const PACKAGES = fileURLToPath(new URL('../../../node_modules', import.meta.url))
const CACHE = join(PACKAGES, '.cache', 'manyworlds')
const { version } = JSON.parse(readFileSync(join(PACKAGES, '@sparticuz/chromium/package.json'), 'utf8')) as {
  version: string
}
const FOLDER = join(CACHE, `chromium-${version}`)
const UNPACK = fileURLToPath(new URL('unpack-chromium.ts', import.meta.url))

/**
 * The browser of the package `@sparticuz/chromium`. The package unpacks it where others can see it before it is whole, and test
 * files start at the same time. So a process unpacks it into a folder of its own, which gets its name when that process has ended.
 */
export async function unpackedChromium(): Promise<string> {
  if (!existsSync(FOLDER)) await unpack()
  return join(FOLDER, 'chromium')
}

async function unpack(): Promise<void> {
  await mkdir(CACHE, { recursive: true })
  const own = await mkdtemp(`${FOLDER}-`)
  try {
    const env = { ...process.env, TMPDIR: own }
    await promisify(execFile)(process.execPath, [UNPACK], { env })
    await rename(own, FOLDER)
  } catch (error) {
    // Another one was faster.
    if (!existsSync(FOLDER)) throw error
    await rm(own, { recursive: true, force: true })
  }
}

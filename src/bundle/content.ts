import { createHash } from 'node:crypto'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { dirname, join, normalize } from 'node:path'
import { BUNDLE_FILE } from '../call-site.ts'
import { ManyworldsError } from '../errors.ts'
import type { Layout } from './layout.ts'

export interface BundledFile {
  /** Relative to the bundle's folder, with `/`. */
  path: string
  bytes: Uint8Array
  sha256: string
}

export async function readFiles(paths: readonly string[], layout: Layout): Promise<BundledFile[]> {
  const files = new Map<string, BundledFile>()
  for (const path of paths) {
    const bytes = await readFile(path)
    files.set(layout.label(path), { path: layout.label(path), bytes, sha256: sha256(bytes) })
  }
  return [...files.values()].sort((a, b) => (a.path < b.path ? -1 : 1))
}

/** The hash covers code and files, so that a changed prompt makes another bundle. A receiver can verify it. */
export function bundleHash(code: Uint8Array, files: readonly Pick<BundledFile, 'path' | 'bytes'>[]): string {
  const parts = files.map(({ path, bytes }) => [path, sha256(bytes)])
  return sha256(JSON.stringify([sha256(code), ...parts]))
}

/** Puts a bundle into a folder, ready to be imported as `<folder>/manyworlds.bundle.mjs`. */
export async function writeBundle(
  folder: string,
  { code, files }: { code: Uint8Array; files: readonly Pick<BundledFile, 'path' | 'bytes'>[] },
): Promise<void> {
  await mkdir(folder, { recursive: true })
  for (const { path, bytes } of files) {
    // Checked because a bundle may come over the network.
    if (path.startsWith('/') || /(^|[\\/])\.\.([\\/]|$)|^[a-z]:|\0/i.test(path)) {
      throw new ManyworldsError('BUNDLE_FAILED', `the bundle has a file outside of its folder: ${JSON.stringify(path)}`)
    }
    const target = join(folder, normalize(path))
    await mkdir(dirname(target), { recursive: true })
    await writeFile(target, bytes)
  }
  // The code is written last: if it is there, the bundle is complete.
  await writeFile(join(folder, BUNDLE_FILE), code)
}

const sha256 = (content: Uint8Array | string) => createHash('sha256').update(content).digest('hex')

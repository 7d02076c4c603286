import { hash, randomBytes } from 'node:crypto'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { BlobFolder } from '../../dist/blob-folder.js'

/** Files of blobs: whole or not there, and for as long as somebody uses them. */

let root: string
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'mw-blob-folder-'))
})
afterEach(() => rmSync(root, { recursive: true, force: true }))

const blobOf = (bytes: Uint8Array) => ({ sha256: hash('sha256', bytes), bytes })
const newFolder = (name: string) => {
  mkdirSync(join(root, name))
  return join(root, name)
}

test('a blob stays until the last of its users has let go of it', async () => {
  const folder = new BlobFolder(newFolder('a'))
  const blob = blobOf(randomBytes(10_000_000))
  const [one, two] = [{}, {}]
  await Promise.all([folder.put(blob, one), folder.put(blob, two)])
  expect(readFileSync(join(folder.path, blob.sha256)).equals(blob.bytes)).toBe(true)
  await folder.drop(blob.sha256, one)
  expect(readdirSync(folder.path)).toEqual([blob.sha256])
  await folder.leave(two)
  expect(readdirSync(folder.path)).toEqual([])
})

test('what was not finished is not there, and leaves nothing', async () => {
  const folder = new BlobFolder(newFolder('a'))
  const file = await folder.create('ab'.repeat(32))
  await file.write(randomBytes(100))
  expect(folder.use('ab'.repeat(32), {})).toBe(false)
  await file.close()
  expect(readdirSync(folder.path)).toEqual([])
})

test('processes of one machine share a file; it is there until the last of them has let go of it', async () => {
  const [first, second] = [newFolder('host-1'), newFolder('host-2')].map((path) => new BlobFolder(path, root))
  const blob = blobOf(randomBytes(1000))
  const user = {}
  expect(second!.use(blob.sha256, user)).toBe(false)
  await first!.put(blob, user)
  expect(second!.use(blob.sha256, user)).toBe(true)
  await first!.drop(blob.sha256, user)
  expect(existsSync(join(first!.path, blob.sha256))).toBe(false)
  expect(readFileSync(join(second!.path, blob.sha256)).equals(blob.bytes)).toBe(true)
  await second!.drop(blob.sha256, user)
  expect(readdirSync(root).toSorted()).toEqual(['host-1', 'host-2'])
})

test('what the others have left is removed by the next one; what is in use, and what is no blob, is not', async () => {
  const first = new BlobFolder(newFolder('host-1'), root)
  const used = blobOf(randomBytes(1000))
  await first.put(used, {})
  writeFileSync(join(root, 'cd'.repeat(32)), 'left')
  writeFileSync(join(root, 'notes'), 'mine')
  new BlobFolder(newFolder('host-2'), root)
  expect(readdirSync(root).toSorted()).toEqual([used.sha256, 'host-1', 'host-2', 'notes'].toSorted())
})

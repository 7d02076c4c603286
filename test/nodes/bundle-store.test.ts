import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { bundleHash } from '../../dist/bundle/content.js'
import { BundleStore } from '../../dist/host/bundle-store.js'
import { packBundle } from '../../dist/network/blob.js'

/** Code that drivers have sent is kept for the next one, but not for ever. */

const KEPT = 20
let folder: string
let store: BundleStore
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'mw-bundles-'))
  store = await BundleStore.open(folder)
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

let made = 0
async function send(user: object): Promise<string> {
  const code = Buffer.from(`export const number = ${made++}`)
  const sha256 = bundleHash(code, [])
  expect(await store.has(sha256, user)).toBe(false)
  await store.put(sha256, packBundle({ sha256, code, files: [] }), user)
  return sha256
}

const kept = () => readdirSync(folder)

test('a host that runs for long keeps the bundles that were used last, and removes the others', async () => {
  const sent: string[] = []
  for (let i = 0; i < 2 * KEPT; i++) {
    const driver = {}
    sent.push(await send(driver))
    await store.release(driver)
    // What is used again stays.
    if (i > 0) {
      expect(await store.has(sent[0]!, driver)).toBe(true)
      await store.release(driver)
    }
  }
  expect(kept()).toHaveLength(KEPT)
  expect(kept()).toEqual(expect.arrayContaining([sent[0], ...sent.slice(-KEPT + 1)]))
  expect(await store.has(sent[1]!, {})).toBe(false)
})

test('what a driver uses stays, however much others send; it goes after the last of them', async () => {
  const [one, two, many] = [{}, {}, {}]
  const shared = await send(one)
  expect(await store.has(shared, two)).toBe(true)
  for (let i = 0; i < 2 * KEPT; i++) await send(many)
  await store.release(one)
  expect(existsSync(join(folder, shared))).toBe(true)
  expect(kept()).toHaveLength(2 * KEPT + 1)
  await store.release(two)
  expect(existsSync(join(folder, shared))).toBe(false)
  await store.release(many)
  expect(kept()).toHaveLength(KEPT)
})

test('a bundle that is removed while it is asked for again is sent again', async () => {
  const first = {}
  const sent: string[] = []
  for (let i = 0; i < 2 * KEPT; i++) sent.push(await send(first))
  const released = store.release(first)
  const second = {}
  const found = await Promise.all(sent.map((sha256) => store.has(sha256, second)))
  await released
  for (const [index, sha256] of sent.entries())
    if (found[index]) expect(existsSync(join(folder, sha256, 'manyworlds.bundle.mjs'))).toBe(true)
})

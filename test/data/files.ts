import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'

/** A folder for the data files of one test: writes one and gives its path. */
export function dataFolder(): (name: string, content: string | Uint8Array) => string {
  const folder = mkdtempSync(join(tmpdir(), 'manyworlds-data-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return (name, content) => {
    writeFileSync(join(folder, name), content)
    return join(folder, name)
  }
}

export const dataFile = (name: string, content: string | Uint8Array): string => dataFolder()(name, content)

/** Bytes in pieces of these sizes, over and over. */
export async function* pieces(content: string | Uint8Array, sizes: readonly number[]): AsyncGenerator<Uint8Array> {
  const bytes = Buffer.from(content as string)
  for (let at = 0, turn = 0; at < bytes.length; turn++) {
    const size = Math.max(1, sizes[turn % sizes.length] ?? 1)
    yield bytes.subarray(at, at + size)
    at += size
  }
}

export async function toArray<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = []
  for await (const item of items) all.push(item)
  return all
}

/** What is said on stderr from here to the end of the test, instead of showing it. */
export function saidOnStderr(): string[] {
  const said: string[] = []
  const write = process.stderr.write
  process.stderr.write = ((text: string) => said.push(text)) as unknown as typeof write
  onTestFinished(() => {
    process.stderr.write = write
  })
  return said
}

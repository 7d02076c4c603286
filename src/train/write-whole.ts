import { open, rename, rm } from 'node:fs/promises'

/** Writes a file atomically: it exists completely or not at all, even after a power failure. */
export async function writeWhole(path: string, content: string | Uint8Array): Promise<void> {
  const unfinished = `${path}.${process.pid}.tmp`
  try {
    await using file = await open(unfinished, 'w')
    await file.writeFile(content)
    await file.sync()
  } catch (error) {
    await rm(unfinished, { force: true })
    throw error
  }
  await rename(unfinished, path)
}

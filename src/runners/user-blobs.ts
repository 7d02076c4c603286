import { type BlobSource, type SharedBlob, sourceOf } from '../blobs.ts'

/** The blobs that a run was configured with, as the executor sees them. */
export function userBlobs(
  blobs: Readonly<Record<string, Uint8Array | SharedBlob>> | undefined,
): ReadonlyMap<string, BlobSource> | undefined {
  return blobs && new Map(Object.entries(blobs).map(([name, blob]) => [name, sourceOf(blob)]))
}

/** The hash of each blob's current version by name, for the run file. */
export async function hashesOf(blobs: ReadonlyMap<string, BlobSource>): Promise<Record<string, string>> {
  const entries = [...blobs].map(async ([name, source]) => [name, (await source.current()).sha256] as const)
  return Object.fromEntries(await Promise.all(entries))
}

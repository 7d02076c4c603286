import { crc32 } from 'node:zlib'
import type { MessageInitShape } from '@bufbuild/protobuf'
import type { AddArtifactsRequestSchema } from './generated/spark_connect_pb.ts'
import type { Who } from './who.ts'

type Request = MessageInitShape<typeof AddArtifactsRequestSchema>

// As recommended by gRPC and used by pyspark.
const CHUNK_BYTES = 32 * 1024

/** A file as the server expects it: in chunks, each with a checksum. */
export async function* artifactRequests(who: Who, name: string, bytes: Uint8Array): AsyncGenerator<Request> {
  const chunkAt = (start: number) => {
    const data = bytes.subarray(start, start + CHUNK_BYTES)
    return { data, crc: BigInt(crc32(data)) }
  }
  if (bytes.byteLength <= CHUNK_BYTES) {
    yield { ...who, payload: { case: 'batch', value: { artifacts: [{ name, data: chunkAt(0) }] } } }
    return
  }
  const numChunks = BigInt(Math.ceil(bytes.byteLength / CHUNK_BYTES))
  const begin = { name, totalBytes: BigInt(bytes.byteLength), numChunks, initialChunk: chunkAt(0) }
  yield { ...who, payload: { case: 'beginChunk', value: begin } }
  for (let start = CHUNK_BYTES; start < bytes.byteLength; start += CHUNK_BYTES)
    yield { ...who, payload: { case: 'chunk', value: chunkAt(start) } }
}

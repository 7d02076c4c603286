import { ManyworldsError } from '../errors.ts'
import { ByteReader } from './bytes.ts'

/** Reads all bytes of a policy or learner. `what`: for the message if they are malformed. */
export function readPacked<T>(bytes: Uint8Array, what: string, read: (reader: ByteReader) => T): T {
  try {
    const reader = new ByteReader(bytes)
    const result = read(reader)
    reader.end()
    return result
  } catch (error) {
    if (ManyworldsError.is(error)) throw error
    throw new ManyworldsError(
      'POLICY_INVALID',
      `these ${bytes.length} bytes are not ${what}, or they are damaged: ${(error as Error).message}`,
      { cause: error },
    )
  }
}

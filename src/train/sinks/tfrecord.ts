import { crc32c } from './crc32c.ts'

/** The framing of TFRecord files, little-endian: the length (8 bytes), its checksum, the data, its checksum. */

const LENGTH_BYTES = 8
const CRC_BYTES = 4
const HEADER_BYTES = LENGTH_BYTES + CRC_BYTES

/** Rotated and offset, as in TensorFlow, because a checksum over data that contains its own checksum is weak. */
function maskedCrc(bytes: Uint8Array): number {
  const crc = crc32c(bytes)
  return (((crc >>> 15) | (crc << 17)) + 0xa282ead8) >>> 0
}

export function tfRecord(data: Uint8Array): Uint8Array {
  const record = new Uint8Array(HEADER_BYTES + data.length + CRC_BYTES)
  const view = new DataView(record.buffer)
  view.setBigUint64(0, BigInt(data.length), true)
  view.setUint32(LENGTH_BYTES, maskedCrc(record.subarray(0, LENGTH_BYTES)), true)
  record.set(data, HEADER_BYTES)
  view.setUint32(HEADER_BYTES + data.length, maskedCrc(data), true)
  return record
}

/** The records of a file, up to the first that is truncated or damaged, like TensorFlow's readers. */
export function* readTfRecords(file: Uint8Array): Generator<Uint8Array> {
  const view = new DataView(file.buffer, file.byteOffset, file.byteLength)
  let at = 0
  while (at + HEADER_BYTES <= file.length) {
    if (view.getUint32(at + LENGTH_BYTES, true) !== maskedCrc(file.subarray(at, at + LENGTH_BYTES))) return
    const end = at + HEADER_BYTES + Number(view.getBigUint64(at, true))
    if (end + CRC_BYTES > file.length) return
    const data = file.subarray(at + HEADER_BYTES, end)
    if (view.getUint32(end, true) !== maskedCrc(data)) return
    yield data
    at = end + CRC_BYTES
  }
}

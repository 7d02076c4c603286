import type { CodeBundle } from '../engines/engine.ts'

/** A bundle as bytes: the length of a JSON header, the header, then the files one after the other. */
interface Header {
  readonly code: number
  readonly files: readonly (readonly [path: string, bytes: number])[]
}

export function packBundle({ code, files }: CodeBundle): Buffer {
  const header: Header = { code: code.byteLength, files: files.map(({ path, bytes }) => [path, bytes.byteLength]) }
  const text = Buffer.from(JSON.stringify(header))
  const length = Buffer.alloc(4)
  length.writeUInt32LE(text.byteLength)
  return Buffer.concat([length, text, code, ...files.map(({ bytes }) => bytes)])
}

/** Throws if the bytes are malformed. Does not check the hash. */
export function unpackBundle(bytes: Uint8Array): Omit<CodeBundle, 'sha256'> {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const headerEnd = 4 + buffer.readUInt32LE(0)
  const { code, files } = JSON.parse(buffer.subarray(4, headerEnd).toString()) as Header
  let at = headerEnd
  const take = (size: unknown) => {
    if (!Number.isInteger(size) || (size as number) < 0 || at + (size as number) > buffer.byteLength)
      throw new Error('the bundle is shorter than its header says')
    at += size as number
    return buffer.subarray(at - (size as number), at)
  }
  const unpacked = { code: take(code), files: files.map(([path, size]) => ({ path: String(path), bytes: take(size) })) }
  if (at !== buffer.byteLength) throw new Error('the bundle is longer than its header says')
  return unpacked
}

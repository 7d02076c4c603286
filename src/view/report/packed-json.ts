import { constants, crc32, deflateRawSync } from 'node:zlib'

/** The window of deflate. */
const WINDOW_BYTES = 32 * 1024
/** A gzip file without a name or a date. */
const HEADER = Buffer.from([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff])
/** An empty final block. */
const LAST_BLOCK = Buffer.from([3, 0])
const TRAILER_BYTES = 8

/** A position in a packed text. */
export interface Mark {
  readonly blocks: number
  readonly bytes: number
  readonly textBytes: number
  readonly checksum: number
  /** The end of the text: the dictionary for what follows. */
  readonly before: Buffer
}

/**
 * Text that is compressed block by block, so that its exact size is known at any time, and a block that makes the file
 * too large can be removed again. The blocks form one gzip file: each is compressed with the end of the text before it as
 * its dictionary.
 */
export class PackedJson {
  readonly #blocks: Buffer[] = [HEADER]
  #at: Mark = {
    ...{ blocks: 1, textBytes: 0, checksum: 0, before: Buffer.alloc(0) },
    bytes: HEADER.length + LAST_BLOCK.length + TRAILER_BYTES,
  }

  /** The size of the file if nothing more is added. */
  get bytes(): number {
    return this.#at.bytes
  }

  add(text: string): void {
    const { blocks, bytes, textBytes, checksum, before } = this.#at
    const added = Buffer.from(text)
    const packed = deflateRawSync(added, {
      ...{ level: 9, finishFlush: constants.Z_SYNC_FLUSH },
      ...(before.length > 0 && { dictionary: before }),
    })
    this.#blocks.push(packed)
    this.#at = {
      blocks: blocks + 1,
      bytes: bytes + packed.length,
      textBytes: textBytes + added.length,
      checksum: crc32(added, checksum),
      before: Buffer.concat([before, added.subarray(-WINDOW_BYTES)]).subarray(-WINDOW_BYTES),
    }
  }

  /** Adds a text, unless the file would be larger than this. */
  addWithin(most: number, text: string): boolean {
    const mark = this.mark()
    this.add(text)
    if (this.bytes <= most) return true
    this.rewind(mark)
    return false
  }

  mark(): Mark {
    return this.#at
  }

  /** Removes everything that was added since the mark. */
  rewind(mark: Mark): void {
    this.#blocks.length = mark.blocks
    this.#at = mark
  }

  end(): Buffer {
    const { textBytes, checksum } = this.#at
    const trailer = Buffer.alloc(TRAILER_BYTES)
    trailer.writeUInt32LE(checksum, 0)
    trailer.writeUInt32LE(textBytes % 2 ** 32, 4)
    return Buffer.concat([...this.#blocks, LAST_BLOCK, trailer])
  }
}

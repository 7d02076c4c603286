import { isUtf8 } from 'node:buffer'
import type { DataSetOptions, MapRow, ParsedRow, RowSource } from './data-set.ts'
import { type DataSource, isAddress, isStream, nameOf, openBytes } from './open-bytes.ts'
import { checkOptions, invalid, type Rules, shown } from './options.ts'
import { isRowSchema } from './row-schema.ts'

/** Much longer than any intended row. A file without line breaks must not fill the memory. */
const MAX_ROW_BYTES = 64 * 1024 * 1024
/** A JavaScript string has at most 536 million characters. */
const MOST_ROW_BYTES = 500_000_000

export interface TextOptions {
  /** The largest size of a row; a longer one is a bad row. Default 64 MB, at most 500 MB. */
  readonly maxRowBytes?: number
}

export interface RowLimits {
  readonly maxRowBytes: number
}

/** Parses chunks of bytes into rows. Errors of a row are values, so that reading can continue after it. */
export interface RowParser {
  push(chunk: Buffer): Iterable<ParsedRow>
  end(): Iterable<ParsedRow>
}

export const NOT_UTF8 = 'the row is not valid UTF-8'

/** Decodes UTF-8. Returns undefined if the bytes are invalid: a replaced character would silently change the row. */
export const textOf = (bytes: Buffer): string | undefined => (isUtf8(bytes) ? bytes.toString() : undefined)

export const tooLong = (bytes: number, most: number): string =>
  `the row has ${bytes} bytes, more than maxRowBytes (${most})`

export const DATA_SET_RULES: Rules = {
  onBadRow: { test: (value) => value === 'throw' || value === 'skip', must: "'throw' or 'skip'" },
  schema: { test: isRowSchema, must: 'a schema with ~standard (zod, valibot, arktype, …)' },
  name: { test: (value) => typeof value === 'string' && value !== '', must: 'a text' },
}

const TEXT_RULES: Rules = {
  ...DATA_SET_RULES,
  maxRowBytes: {
    test: (value) => Number.isInteger(value) && (value as number) >= 1 && (value as number) <= MOST_ROW_BYTES,
    must: `a whole number from 1 to ${MOST_ROW_BYTES}`,
  },
}

/** The mapping function may be left out, so the second argument is either the function or the options. */
export function checkTextOptions<Options extends DataSetOptions>(
  caller: string,
  source: unknown,
  [second, third]: readonly [MapRow<never, unknown> | Options | undefined, Options | undefined],
  more: Rules = {},
): { readonly map: MapRow<never, unknown> | undefined; readonly options: Options } {
  checkSource(caller, source)
  const map = typeof second === 'function' ? second : undefined
  const options = (map === undefined ? (second ?? third) : third) ?? ({} as Options)
  checkOptions(caller, options, { ...TEXT_RULES, ...more })
  return { map, options: options as Options }
}

function checkSource(caller: string, source: unknown): void {
  if (typeof source === 'string' && source !== '') return
  if (source instanceof URL) {
    if (source.protocol === 'file:' || isAddress(source)) return
    throw invalid(`${caller}: an address must start with file:, http: or https:, it is '${source.protocol}…'`)
  }
  if (typeof source === 'object' && source !== null && Symbol.asyncIterator in source) return
  throw invalid(`${caller}: give a path, an address or a stream of bytes, not ${source === '' ? "''" : shown(source)}`)
}

export function textRows(
  source: DataSource,
  options: DataSetOptions & TextOptions,
  makeParser: (limits: RowLimits, file: string) => RowParser,
): RowSource {
  const file = nameOf(source, options.name)
  const limits = { maxRowBytes: options.maxRowBytes ?? MAX_ROW_BYTES }
  return {
    file,
    isStream: isStream(source),
    async *read(stop) {
      const parser = makeParser(limits, file)
      for await (const chunk of openBytes(source, file, stop)) yield parser.push(chunk)
      yield parser.end()
    },
  }
}

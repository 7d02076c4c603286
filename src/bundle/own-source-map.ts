/**
 * The source map of the user's own modules only. Those of packages would double the bundle (13 instead of 7.6 MB with playwright-core),
 * and every worker would parse them; a stack frame in a package points into the bundle, which is not minified.
 */

interface SourceMap {
  sources: string[]
  mappings: string
}

/** `label` names a source of the user's, and returns undefined for one to leave out. */
export function ownSourceMap(json: string, label: (source: string) => string | undefined): string {
  const map = JSON.parse(json) as SourceMap
  const labels = map.sources.map(label)
  const sources = labels.filter((name) => name !== undefined)
  const kept = labels.map((name) => (name === undefined ? -1 : sources.indexOf(name)))
  return JSON.stringify({ version: 3, sources, names: [], mappings: filterMappings(map.mappings, kept) })
}

/** `kept[source]` is the new index of a source, or -1. Each field of a segment is a difference to the segment before. */
function filterMappings(mappings: string, kept: readonly number[]): string {
  let [source, line, column] = [0, 0, 0]
  let [lastSource, lastLine, lastColumn] = [0, 0, 0]
  let inOwn = false
  const filterLine = (text: string) => {
    let [generated, lastGenerated] = [0, 0]
    let out = ''
    const emit = (...fields: number[]) => {
      out += (out && ',') + fields.map(encodeVlq).join('')
    }
    for (const [columnStep, ...origin] of text.split(',').map(decodeVlq)) {
      generated += columnStep ?? 0
      source += origin[0] ?? 0
      line += origin[1] ?? 0
      column += origin[2] ?? 0
      const index = origin.length > 0 ? (kept[source] ?? -1) : -1
      if (index >= 0) {
        emit(generated - lastGenerated, index - lastSource, line - lastLine, column - lastColumn)
        ;[lastSource, lastLine, lastColumn] = [index, line, column]
      } else if (inOwn) {
        // A segment without origin ends the module: otherwise all that follows would count as its last line.
        emit(generated - lastGenerated)
      } else continue
      lastGenerated = generated
      inOwn = index >= 0
    }
    return out
  }
  return mappings
    .split(';')
    .map((text) => (text === '' ? '' : filterLine(text)))
    .join(';')
}

const BASE64 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/'
const DIGITS = new Map([...BASE64].map((char, digit) => [char, digit]))

function decodeVlq(segment: string): number[] {
  const fields: number[] = []
  let [value, shift] = [0, 0]
  for (const char of segment) {
    const digit = DIGITS.get(char) ?? 0
    value |= (digit & 31) << shift
    shift += 5
    if (digit & 32) continue
    fields.push(value & 1 ? -(value >> 1) : value >> 1)
    ;[value, shift] = [0, 0]
  }
  return fields
}

function encodeVlq(field: number): string {
  let rest = field < 0 ? (-field << 1) | 1 : field << 1
  let out = ''
  do {
    const digit = rest & 31
    rest >>>= 5
    out += BASE64[rest > 0 ? digit | 32 : digit]
  } while (rest > 0)
  return out
}

/** A number that was read from a text. */
export interface NumberText {
  readonly value: number
  /** The text next to it, such as `km`, `%` or `$`, in lower case; empty if there is none. */
  readonly unit: string
  /**
   * The same without its suffix as a magnitude: `300K` is 300,000, or 300 kelvin. The value of an ambiguous number is NaN: `5m`
   * may be millions or meters.
   */
  readonly plain?: NumberText
}

const CURRENCY = '[$€£¥₹]'
/** Thousands separators: commas, apostrophes, underscores and narrow spaces. A plain space is allowed only if it is unambiguous. */
const SEPARATORS = String.raw`,'’_\u00a0\u202f\u2009`
const DECIMALS = String.raw`(?:\.\d+)?(?:e[-+]?\d+)?`
const numberWith = (separators: string) =>
  String.raw`(?:\d{1,3}(?:[${separators}]\d{3})+(?!\d)|\d+)${DECIMALS}|(?<!\d)\.\d+(?:e[-+]?\d+)?`

/** Words that scale the number and are not part of its unit. */
const SCALES: Readonly<Record<string, number>> = {
  hundred: 1e2,
  thousand: 1e3,
  million: 1e6,
  billion: 1e9,
  trillion: 1e12,
}
const SCALE = new RegExp(`\\s*(${Object.keys(SCALES).join('|')})(?!\\p{L})`, 'iuy')

/**
 * Magnitudes that are attached to the number. Some letters are more often a unit in lower case, so alone they say nothing; a
 * currency makes them clear: `$5m`.
 */
const SUFFIXES: Readonly<Record<string, number>> = {
  k: 1e3,
  K: 1e3,
  M: 1e6,
  B: 1e9,
  bn: 1e9,
  Bn: 1e9,
  bN: 1e9,
  BN: 1e9,
}
const UNCLEAR: Readonly<Record<string, number>> = { m: 1e6, b: 1e9 }
/** Not the beginning of a unit: `5kg`, `5m/s`, `5m²`, `5m^2`. */
const SUFFIX = /(?:[Bb][Nn]|[KkMB]|[mb](?!\/))(?![\p{L}\p{N}^·])/uy

const WHOLE = new RegExp(
  `^([-+−])?\\s*(${CURRENCY})?\\s*([-−])?(${numberWith(`${SEPARATORS} `)})(\\s?[^\\s\\d]*(?:\\s[^\\s\\d]+){0,2})$`,
  'iu',
)
const CURRENCY_END = new RegExp(`${CURRENCY}\\s*[-−]?$`, 'u')
const ANYWHERE = new RegExp(`([-−])?(${numberWith(SEPARATORS)})`, 'giu')

/** Longer texts are not parsed as a number with a unit. */
const MAX_CHARS = 100
/** How much of the end of a long text is searched for its last number. */
const MAX_TAIL_CHARS = 10_000

/**
 * Reads a text that is one number: `1,234.5`, `-3e8`, `$12`, `12 %`, `5 km`, `2.5 million`. A comma is not a decimal point:
 * `1,5` is not a number; `2k` is 2,000. Returns undefined if the text is not a number.
 */
export function readNumber(text: string): NumberText | undefined {
  const trimmed = text.trim()
  const match = trimmed.length > MAX_CHARS ? null : WHOLE.exec(trimmed)
  if (!match) return undefined
  const [, sign = '', currency = '', inner = '', number = '', after = ''] = match
  const value = signed(plainNumber(number), inner || sign)
  const unitAfter = (end: number) =>
    [currency, after.slice(end).trim()].join(' ').trim().toLowerCase().replace(/[.!]$/, '')
  const suffix = suffixAt(after, 0, currency !== '')
  if (suffix) return { value: value * suffix.scale, unit: unitAfter(suffix.end), plain: { value, unit: unitAfter(0) } }
  const { scale, end } = scaleAt(after, 0)
  return { value: value * scale, unit: unitAfter(end) }
}

/** The last number in a text: `so 3 + 4 = 7.` gives 7, as does `7, which is the sum`. Returns undefined if there is none. */
export function lastNumber(text: string): NumberText | undefined {
  const tail = text.slice(-MAX_TAIL_CHARS)
  let last: RegExpExecArray | undefined
  for (const match of tail.matchAll(ANYWHERE)) last = match
  if (!last) return undefined
  const [whole, sign = '', number = ''] = last
  // After a letter or digit, a minus is a hyphen: `10-12`, `GPT-4`.
  const joins = /[\p{L}\p{N}]/u.test(tail.charAt(last.index - 1))
  const end = last.index + whole.length
  const value = signed(plainNumber(number), joins ? '' : sign)
  const isMoney = CURRENCY_END.test(tail.slice(0, last.index))
  const suffix = suffixAt(tail, end, isMoney)
  if (suffix) return { value: value * suffix.scale, unit: '', plain: { value, unit: suffix.text.toLowerCase() } }
  return { value: value * scaleAt(tail, end).scale, unit: '' }
}

function suffixAt(text: string, at: number, isMoney: boolean) {
  SUFFIX.lastIndex = at
  const [suffix] = SUFFIX.exec(text) ?? []
  if (suffix === undefined) return undefined
  const scale = SUFFIXES[suffix] ?? (isMoney ? UNCLEAR[suffix] : Number.NaN) ?? Number.NaN
  return { text: suffix, scale, end: at + suffix.length }
}

function scaleAt(text: string, at: number): { scale: number; end: number } {
  SCALE.lastIndex = at
  const word = SCALE.exec(text)
  return word ? { scale: SCALES[word[1]!.toLowerCase()]!, end: at + word[0].length } : { scale: 1, end: at }
}

const plainNumber = (number: string) => Number(number.replaceAll(/[,'’_\s]/g, ''))
const signed = (value: number, sign: string) => (sign === '-' || sign === '−' ? -value : value)

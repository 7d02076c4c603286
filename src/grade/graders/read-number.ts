/** A number that was read from a text. */
export interface NumberText {
  readonly value: number
  /** The text next to it, such as `km`, `%` or `$`, in lower case; empty if there is none. */
  readonly unit: string
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

const WHOLE = new RegExp(
  `^([-+−])?\\s*(${CURRENCY})?\\s*([-−])?(${numberWith(`${SEPARATORS} `)})(\\s?[^\\s\\d]*(?:\\s[^\\s\\d]+){0,2})$`,
  'iu',
)
const ANYWHERE = new RegExp(`([-−])?(${numberWith(SEPARATORS)})`, 'giu')

/** Longer texts are not parsed as a number with a unit. */
const MAX_CHARS = 100
/** How much of the end of a long text is searched for its last number. */
const MAX_TAIL_CHARS = 10_000

/**
 * Reads a text that is one number: `1,234.5`, `-3e8`, `$12`, `12 %`, `5 km`, `2.5 million`. A comma is not a decimal point:
 * `1,5` is not a number. Returns undefined if the text is not a number.
 */
export function readNumber(text: string): NumberText | undefined {
  const trimmed = text.trim()
  const match = trimmed.length > MAX_CHARS ? null : WHOLE.exec(trimmed)
  if (!match) return undefined
  const [, sign = '', currency = '', inner = '', number = '', after = ''] = match
  const { scale, end } = scaleAt(after, 0)
  const unit = [currency, after.slice(end).trim()].join(' ').trim().toLowerCase()
  return { value: signed(plainNumber(number) * scale, inner || sign), unit: unit.replace(/[.!]$/, '') }
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
  const { scale } = scaleAt(tail, last.index + whole.length)
  return { value: signed(plainNumber(number) * scale, joins ? '' : sign), unit: '' }
}

function scaleAt(text: string, at: number): { scale: number; end: number } {
  SCALE.lastIndex = at
  const word = SCALE.exec(text)
  return word ? { scale: SCALES[word[1]!.toLowerCase()]!, end: at + word[0].length } : { scale: 1, end: at }
}

const plainNumber = (number: string) => Number(number.replaceAll(/[,'’_\s]/g, ''))
const signed = (value: number, sign: string) => (sign === '-' || sign === '−' ? -value : value)

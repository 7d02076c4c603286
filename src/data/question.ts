import { invalid, shown } from './options.ts'

/** Invisible characters: joiners, soft hyphens, variation selectors, marks of text direction. */
const UNSEEN = /\p{Default_Ignorable_Code_Point}+/gu
const SPACE = /\s+/gu

/**
 * Normalizes a question: two texts that people would call the same question become equal. Ignores case, white space, invisible
 * characters, and Unicode variants of a character (NFKC: `ﬁ` and `fi`, `①` and `1`, full-width and plain letters).
 */
export function normalizeQuestion(text: string): string {
  // Lower, upper, lower: a letter may have several lower-case forms (σ and ς), or become two letters (ẞ, ß, ss).
  const folded = text.normalize('NFKC').toLowerCase().toUpperCase().toLowerCase().normalize('NFKC')
  return folded.replace(UNSEEN, '').replace(SPACE, ' ').trim()
}

/** The question of a text or a task: for a task its input, with all texts normalized. Other fields of the task are ignored. */
export function questionOf(item: unknown): string {
  if (typeof item === 'string') return normalizeQuestion(item)
  if (typeof item === 'object' && item !== null && 'agent' in item && 'input' in item) return canonical(item.input)
  throw invalid(
    `\`key\` is required unless items are texts or tasks, and this item is ${shown(item)}; give a function that returns the question of a row, such as (row) => row.question`,
  )
}

/** Serializes a value, independent of the order of keys. */
function canonical(value: unknown): string {
  if (typeof value === 'string') return normalizeQuestion(value)
  return (
    JSON.stringify(value, (_key, inner: unknown) => {
      if (typeof inner === 'string') return normalizeQuestion(inner)
      if (typeof inner === 'bigint') return `${inner}n`
      if (typeof inner !== 'object' || inner === null || Array.isArray(inner)) return inner
      if (inner instanceof Map) return { map: [...inner] }
      if (inner instanceof Set) return { set: [...inner] }
      return Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1)))
    }) ?? 'undefined'
  )
}

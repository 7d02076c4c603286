import { invalid, shown } from './options.ts'

/** What is not seen: joiners, soft hyphens, variation selectors, marks that turn text around. */
const UNSEEN = /\p{Default_Ignorable_Code_Point}+/gu
const SPACE = /\s+/gu

/**
 * The same text for what people would call the same question: without regard to case, to white space, to characters that
 * are not seen, and to how Unicode writes a character (NFKC: `ﬁ` and `fi`, `①` and `1`, full-width and plain letters).
 */
export function normalizeQuestion(text: string): string {
  // Down, up and down: a letter may have several lower ones (σ and ς), or become two on the way (ẞ, ß, ss).
  const folded = text.normalize('NFKC').toLowerCase().toUpperCase().toLowerCase().normalize('NFKC')
  return folded.replace(UNSEEN, '').replace(SPACE, ' ').trim()
}

/** The question of a text or of a task: its input, with all texts in it normalized; whatever else the task has does not count. */
export function questionOf(item: unknown): string {
  if (typeof item === 'string') return normalizeQuestion(item)
  if (typeof item === 'object' && item !== null && 'agent' in item && 'input' in item) return canonical(item.input)
  throw invalid(
    `what makes two rows the same question? Give \`key\`, such as (row) => row.question; a key is only known of texts and tasks, and this is ${shown(item)}`,
  )
}

/** One text for each value, whatever the order of its keys. */
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

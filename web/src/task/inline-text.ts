import { Shown } from './shown-value.ts'

/** More deeply nested values are not shown on one line. */
const MOST_LEVELS = 12

/** A value on one line: `{ a: 1, b: [2, 3] }`. Undefined if it is longer than `most` characters. */
export function inlineText(value: unknown, most: number): string | undefined {
  let left = most
  const write = (value: unknown, level = 0): string => {
    if (level > MOST_LEVELS) left = -1
    if (left < 0) return ''
    if (typeof value !== 'object' || value === null || value instanceof Shown) return spend(leafText(value, left))
    if (Array.isArray(value) || ArrayBuffer.isView(value))
      return `[${some(value as readonly unknown[], (one) => write(one, level + 1))}]`
    const keys = Object.keys(value)
    if (keys.length === 0) return spend('{}')
    const pairs = some(
      keys,
      (key) => `${spend(nameText(key))}: ${write((value as Record<string, unknown>)[key], level + 1)}`,
    )
    return `{ ${pairs} }`
  }
  const spend = (text: string) => {
    left -= text.length + 2
    return text
  }
  function some<Item>(items: Iterable<Item> & { readonly length: number }, one: (item: Item) => string): string {
    const texts: string[] = []
    spend('')
    for (const item of items) {
      if (left < 0) break
      texts.push(one(item))
    }
    return texts.join(', ')
  }
  const text = write(value)
  return left < 0 || text.length > most ? undefined : text
}

const nameText = (key: string) => (/^[A-Za-z_$][\w$]{0,60}$/.test(key) ? key : JSON.stringify(key))

function leafText(value: unknown, left: number): string {
  if (value instanceof Shown) return value.text
  if (typeof value === 'string') return value.length > left ? value : JSON.stringify(value)
  return Object.is(value, -0) ? '-0' : String(value)
}

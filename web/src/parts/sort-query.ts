/** The order of a table. */
export interface Sort<Key extends string> {
  readonly key: Key
  readonly isDescending: boolean
}

/** The order in an address, such as `-runMs`. */
export function readSort<Key extends string>(
  text: string | null,
  isKey: (text: string) => text is Key,
  usual: Sort<Key>,
): Sort<Key> {
  const isDescending = text?.startsWith('-') ?? false
  const key = (text ?? '').slice(isDescending ? 1 : 0)
  return isKey(key) ? { key, isDescending } : usual
}

/** The order for the address. Undefined if it is the default order. */
export const writeSort = <Key extends string>(
  { key, isDescending }: Sort<Key>,
  usual: Sort<Key>,
): string | undefined =>
  key === usual.key && isDescending === usual.isDescending ? undefined : `${isDescending ? '-' : ''}${key}`

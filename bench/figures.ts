/** The number after a flag: `--rounds 3`. */
export function numberOf(flag: string, otherwise: number): number {
  const at = process.argv.indexOf(flag)
  return at < 0 ? otherwise : Number(process.argv[at + 1])
}

export function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[values.length >> 1]!
}

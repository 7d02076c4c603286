import { ManyworldsError } from '../../errors.ts'
import type { Row, TokenRow } from '../row.ts'

/** Encodes rows for python/lora_rows.py: one part per field, with the values of all rows. */
export function rowParts(rows: readonly Row[], policy: string): readonly Uint8Array[] {
  const tokens = rows.map((row, at) => tokenRow(row, at, policy))
  const lengths = Int32Array.from(tokens, ({ ids }) => ids.length)
  const total = lengths.reduce((sum, length) => sum + length, 0)
  const ids = new Int32Array(total)
  const mask = new Uint8Array(total)
  const temperatures = Float64Array.from(tokens, ({ temperature }) => temperature)
  const [behavior, proximal, advantage, weight] = [total, total, total, total].map((size) => new Float64Array(size))
  let at = 0
  for (const row of tokens) {
    ids.set(row.ids, at)
    mask.set(row.mask, at)
    behavior!.set(row.behavior, at)
    proximal!.set(row.proximal ?? row.behavior, at)
    advantage!.set(row.advantage, at)
    weight!.set(row.weight, at)
    at += row.ids.length
  }
  const parts = [lengths, ids, mask, temperatures, behavior!, proximal!, advantage!, weight!]
  return parts.map((part) => new Uint8Array(part.buffer))
}

/** Splits one number per token into rows. */
export function perRow(bytes: Uint8Array, rows: readonly Row[]): Float64Array[] {
  const all = new Float64Array(bytes.buffer, bytes.byteOffset, bytes.byteLength / 8)
  let at = 0
  return rows.map((row) => all.slice(at, (at += (row as TokenRow).ids.length)))
}

function tokenRow(row: Row, at: number, policy: string): TokenRow {
  if (row.kind === 'tokens') return row
  throw new ManyworldsError(
    'ROW_INVALID',
    `row ${at} contains an action chosen from candidates; the LoRA policy '${policy}' can only be trained on tokens`,
  )
}

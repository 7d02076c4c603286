import { NotPackable, pack } from '../../protocol/pack.ts'

/** Returns a tool result in a form that can be recorded. If it cannot be packed, JSON is enough: the model sees JSON too. */
export function asSendable(value: unknown): unknown {
  try {
    pack(value)
    return value
  } catch (error) {
    if (!(error instanceof NotPackable)) throw error
    try {
      return JSON.parse(JSON.stringify(value) ?? 'null') as unknown
    } catch {
      return String(value)
    }
  }
}

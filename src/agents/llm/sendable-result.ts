import { NotPackable, pack } from '../../protocol/pack.ts'

/** What a tool returned, in a form that can be recorded: the model sees it as JSON, so that will do where it has to. */
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

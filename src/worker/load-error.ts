import type { LoadFailure } from '../protocol/messages.ts'

/** The code of an agent could not be loaded, and why. */
export class LoadError extends Error {
  readonly code: LoadFailure
  constructor(code: LoadFailure, message: string, options?: { cause?: unknown }) {
    super(message, options)
    this.code = code
  }
}

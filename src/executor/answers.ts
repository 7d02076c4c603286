import { hash } from 'node:crypto'
import { serialize } from 'node:v8'
import type { Ask, Packed } from '../protocol/messages.ts'
import type { Lease } from './entry.ts'

/** Which answer of an attempt: what was asked, and how often that had been asked before. */
export interface AnswerKey {
  readonly hash: Buffer
  readonly occurrence: number
}

export interface KeptAnswer {
  readonly value: Packed
}

/**
 * Answers that count, of one attempt of a task. They are on disk before the task gets them; a run of the same attempt that
 * was cut short has left them here, or in the store, for the next.
 */
export class Answers {
  readonly #attempt: number
  readonly #kept: Map<string, KeptAnswer>

  private constructor(attempt: number, kept: Map<string, KeptAnswer>) {
    this.#attempt = attempt
    this.#kept = kept
  }

  static of({ entry, attempt }: Lease): Answers {
    if (entry.answersKept?.isOf(attempt)) return entry.answersKept
    const earlier = entry.run.recorder?.answersOf(entry, attempt) ?? []
    const answers = new Answers(attempt, new Map([...earlier].map(([key, kept]) => [textOf(key), kept])))
    entry.answersKept = answers
    return answers
  }

  isOf(attempt: number): boolean {
    return this.#attempt === attempt
  }

  /** The key of a request, which counts as asked from here on. */
  keyOf(lease: Lease, { service, body }: Ask): AnswerKey {
    const digest = hash('sha256', serialize([service, body]), 'buffer').subarray(0, 16)
    const name = digest.toString('latin1')
    const { asked } = lease.asks!
    const occurrence = asked.get(name) ?? 0
    asked.set(name, occurrence + 1)
    return { hash: digest, occurrence }
  }

  get(key: AnswerKey): KeptAnswer | undefined {
    return this.#kept.get(textOf(key))
  }

  /** Calls back when it is safe. */
  keep(lease: Lease, service: string, key: AnswerKey, value: Packed, safe: () => void): void {
    const done = () => {
      this.#kept.set(textOf(key), { value })
      safe()
    }
    const { recorder, over } = lease.entry.run
    if (recorder && !over) recorder.answer(lease, service, key, value, done)
    else done()
  }
}

const textOf = ({ hash, occurrence }: AnswerKey) => `${hash.toString('latin1')}${occurrence}`

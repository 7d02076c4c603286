import { hash } from 'node:crypto'
import { serialize } from 'node:v8'
import type { Ask, Packed } from '../protocol/messages.ts'
import type { Lease } from './task-entry.ts'

/** Identifies an answer within an attempt: by the hash of the question, and how often the attempt asked it before. */
export interface AnswerKey {
  readonly hash: Buffer
  readonly occurrence: number
}

export interface KeptAnswer {
  readonly value: Packed
}

/** `waiting`: called once the answer is on disk. */
type Keeping = KeptAnswer & { waiting?: (() => void)[] | undefined }

/**
 * The durable answers of one attempt of a task. An answer is on disk before the task gets it. A rerun of the attempt finds
 * the answers here, or in the store if the driver was restarted.
 */
export class Answers {
  readonly #attempt: number
  readonly #kept = new Map<string, Keeping>()
  /** Requests that cost money, answered or not. */
  readonly #begun = new Set<string>()

  private constructor(attempt: number, earlier: Iterable<readonly [AnswerKey, KeptAnswer | undefined]>) {
    this.#attempt = attempt
    for (const [key, kept] of earlier) {
      if (kept) this.#kept.set(textOf(key), kept)
      else this.#begun.add(textOf(key))
    }
  }

  static of({ entry, attempt }: Lease): Answers {
    if (entry.answersKept?.isOf(attempt)) return entry.answersKept
    const earlier = entry.run.recorder?.answersOf(entry, attempt) ?? []
    const answers = new Answers(attempt, earlier)
    entry.answersKept = answers
    return answers
  }

  isOf(attempt: number): boolean {
    return this.#attempt === attempt
  }

  /** The key of a request, which is counted as asked. */
  keyOf(lease: Lease, { service, body }: Ask): AnswerKey {
    const digest = hash('sha256', serialize([service, body]), 'buffer').subarray(0, 16)
    const name = digest.toString('latin1')
    const { asked } = lease.asks!
    const occurrence = asked.get(name) ?? 0
    asked.set(name, occurrence + 1)
    return { hash: digest, occurrence }
  }

  /** Calls `take` with the stored answer, once it is on disk. False: there is none. */
  give(key: AnswerKey, take: (value: Packed) => void): boolean {
    const kept = this.#kept.get(textOf(key))
    if (kept === undefined) return false
    if (kept.waiting) kept.waiting.push(() => take(kept.value))
    else take(kept.value)
    return true
  }

  /**
   * Notes a request that costs money, and calls `safe` when the note is on disk. If its earlier answer was lost in a crash, it
   * counts as repeated.
   */
  begin(lease: Lease, service: string, key: AnswerKey, safe: () => void): void {
    const name = textOf(key)
    const { run } = lease.entry
    const isRepeated = this.#begun.has(name)
    if (isRepeated) run.repeatedCalls++
    this.#begun.add(name)
    if (isRepeated || run.over || run.recorder === undefined) safe()
    else run.recorder.called(lease, service, key, safe)
  }

  /** Stores an answer, and calls `safe` when it is on disk. One with a secret in it, or in its question, is kept in memory only. */
  keep(lease: Lease, { service, body }: Ask, key: AnswerKey, value: Packed, safe: () => void): void {
    const waiting = [safe]
    const kept: Keeping = { value, waiting }
    this.#kept.set(textOf(key), kept)
    const done = () => {
      kept.waiting = undefined
      for (const tell of waiting) tell()
    }
    const { recorder, over, options } = lease.entry.run
    if (recorder === undefined || over) return done()
    const { redactor } = options
    if (!redactor || !(redactor.has(body) || redactor.has(value)))
      return recorder.answer(lease, service, key, value, done)
    redactor.skipped.set(service, (redactor.skipped.get(service) ?? 0) + 1)
    done()
  }
}

const textOf = ({ hash, occurrence }: AnswerKey) => `${hash.toString('latin1')}${occurrence}`

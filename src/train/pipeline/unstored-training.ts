import { hash } from 'node:crypto'
import type { TrainingHistory, TrainingRecord, VersionRow } from './training-record.ts'

/** The record of a training without a store: weights are kept in memory, and nothing can be resumed. */
export class UnstoredTraining implements TrainingRecord {
  readonly id: string
  readonly isNew = true
  readonly config: unknown
  readonly history: TrainingHistory = { plans: [], updates: [], versions: [], evals: [], sampler: null, best: null }
  readonly #files = new Map<string, Uint8Array>()
  readonly #versions = new Map<number, string>()
  #state: string | undefined

  constructor(id: string, config: unknown) {
    this.id = id
    this.config = config
  }

  plan(): void {}

  update({ update, version }: Parameters<TrainingRecord['update']>[0]): void {
    if (version) this.version(version)
    if (this.#state !== undefined && this.#state !== update.stateSha) this.#files.delete(this.#state)
    this.#state = update.stateSha
  }

  version({ version, sha256 }: VersionRow): void {
    this.#versions.set(version, sha256)
  }

  evaluation(): void {}

  async writeFile(bytes: Uint8Array): Promise<string> {
    const sha256 = hash('sha256', bytes)
    this.#files.set(sha256, bytes)
    return sha256
  }

  async readFile(sha256: string): Promise<Uint8Array> {
    return this.#files.get(sha256)!
  }

  async thin(): Promise<number> {
    return 0
  }

  drop(versions: readonly number[]): void {
    for (const version of versions) {
      const sha256 = this.#versions.get(version)
      this.#versions.delete(version)
      // Two versions may have the same bytes.
      if (sha256 !== undefined && ![...this.#versions.values()].includes(sha256)) this.#files.delete(sha256)
    }
  }

  close(): void {}

  leave(): void {}
}

import type { Published } from '../learner.ts'
import type { TrainingRecord, VersionRow } from './training-record.ts'

/** The versions of a training's policy: the current one, and those whose weights are kept. */
export class Versions {
  readonly #record: TrainingRecord
  readonly #rows: Map<number, VersionRow>
  #current: Published

  constructor(record: TrainingRecord, current: Published) {
    this.#record = record
    this.#rows = new Map(record.history.versions.map((row) => [row.version, row]))
    this.#current = current
  }

  get current(): Published {
    return this.#current
  }

  /** Reads a version whose weights are kept. */
  async get(version: number): Promise<Published> {
    if (version === this.#current.ref.version) return this.#current
    const { policy, sha256 } = this.#rows.get(version)!
    const bytes = await this.#record.readFile(sha256)
    return { ref: { policy, version, digest: sha256, at: { blob: sha256 } }, bytes }
  }

  /** Writes the weights of a version; it exists once its row is stored. */
  async write({ ref, bytes }: Published, update: number | null): Promise<VersionRow> {
    const { version, policy, digest } = ref
    const sha256 = bytes ? await this.#record.writeFile(bytes) : (digest ?? '')
    return { version, update, sha256, policy, bytes: bytes?.length ?? 0, kept: bytes !== null }
  }

  stored(row: VersionRow, published: Published): void {
    this.#rows.set(row.version, row)
    this.#current = published
  }

  /** Removes the weights of all other versions, except the first and the current one. */
  keepOnly(wanted: ReadonlySet<number>): void {
    const needed = (version: number) => version === 0 || version === this.#current.ref.version || wanted.has(version)
    const gone = [...this.#rows.values()].filter(({ version, kept }) => kept && !needed(version))
    if (gone.length === 0) return
    this.#record.drop(gone.map(({ version }) => version))
    for (const row of gone) this.#rows.set(row.version, { ...row, kept: false })
  }
}

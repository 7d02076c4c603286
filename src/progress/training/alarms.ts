import type { UpdateRow } from '../../train/pipeline/training-record.ts'

/** Alarms of updates, each of them once: many come with every update from the first on. */
export class NewAlarms {
  readonly #said = new Set<string>()

  of({ number, report }: UpdateRow): string[] {
    return report.alarms.flatMap((alarm) => {
      // The figures in it change from update to update.
      const kind = alarm.replaceAll(/[\d.]+/g, '#')
      if (this.#said.has(kind)) return []
      this.#said.add(kind)
      return [`update ${number}: ${alarm}`]
    })
  }
}

import type { UpdateRow } from '../../train/pipeline/training-record.ts'

/** Shows each kind of alarm once, because many alarms are repeated with every update. */
export class NewAlarms {
  readonly #said = new Set<string>()

  of({ number, report }: UpdateRow): string[] {
    return report.alarms.flatMap((alarm) => {
      // The numbers in an alarm change from update to update.
      const kind = alarm.replaceAll(/[\d.]+/g, '#')
      if (this.#said.has(kind)) return []
      this.#said.add(kind)
      return [`update ${number}: ${alarm}`]
    })
  }
}

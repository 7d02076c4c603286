import { writeFile } from 'node:fs/promises'
import { failed, OutFile } from '../../../export/out-file.ts'
import { oneLine } from '../../../text/escape-controls.ts'
import { ownCommand, runArgument, shellWord } from '../../../text/own-command.ts'
import { bytes } from '../../../text/quantities.ts'
import { say } from '../../../text/say.ts'
import { type MadeReport, makeReport } from '../../../view/report.ts'
import { targetOf } from '../../../view/target.ts'
import { stopSignal } from '../../frame/stop-signal.ts'
import { withReportRow } from './report-row.ts'
import type { ViewArgs } from './spec.ts'

/** `manyworlds view RUN --out report.html`: writes a report, and lists what it left out. */
export async function writeReport(out: string, args: ViewArgs): Promise<number> {
  const target = targetOf(args.what, args.dir)
  const { signal, code } = stopSignal()
  // Checked first, so that a file that cannot be written is reported before the work.
  const file = await OutFile.at(out, args.force)
  const maxBytes = args.maxSize * 1e6
  try {
    const report = await withReportRow(maxBytes, (progress) =>
      makeReport(target, { maxBytes, include: args.include, signal, progress }),
    )
    await writeFile(file.path, report.html).catch((cause: Error) => {
      throw failed(out, cause.message, cause)
    })
    await file.keep()
    say(`${oneLine(out)}: ${bytes(report.bytes)}`)
    for (const what of report.leftOut) say(`left out: ${oneLine(what)}`)
    if (report.isFull) say(`a larger --max-size than ${args.maxSize} includes more`)
    if (report.cut) say(`to print a task with complete texts: ${showCommand(report.cut)}`)
    return 0
  } catch (error) {
    await file.discard()
    const stopped = code()
    if (stopped === undefined) throw error
    say(`interrupted; ${out} was not written`)
    return stopped
  }
}

const showCommand = ({ run, file, task }: NonNullable<MadeReport['cut']>): string =>
  [...ownCommand(), 'show', runArgument(run, file), task, '--json'].map(shellWord).join(' ')

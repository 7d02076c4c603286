import { existsSync } from 'node:fs'
import { tableOf } from '../export/columns.ts'
import { exportText, exportToFile } from '../export/export-table.ts'
import { FORMATS, type Format } from '../export/formats.ts'
import { streamOutput } from '../export/text-output.ts'
import { RunFile } from '../store/run-file.ts'
import { counted } from '../text/quantities.ts'
import { say } from '../text/say.ts'
import { visible } from '../text/visible.ts'
import type { ExportArgs } from './specs/export.ts'
import { UsageError } from './usage-error.ts'

const SIGNALS = { SIGINT: 130, SIGTERM: 143 } as const

/** Writes what a run has as a table. */
export async function run(args: ExportArgs): Promise<number> {
  const { out, what, force } = args
  const format = formatOf(args)
  if (out !== undefined && existsSync(out) && !force)
    throw new UsageError(`${out} is there already; --force replaces it`)
  using file = RunFile.open(args.run, args.dir === undefined ? {} : { store: args.dir })
  const table = tableOf(file, what, args.subtasks)
  if (out === undefined) {
    if (format === 'parquet') throw new UsageError('a Parquet file is not text: give --out FILE')
    await exportText(table, format, streamOutput(process.stdout))
    return 0
  }
  const stop = new AbortController()
  let code: number | undefined
  for (const [signal, exitCode] of Object.entries(SIGNALS))
    process.once(signal, () => {
      code = exitCode
      stop.abort()
    })
  try {
    const rows = await exportToFile(table, format, out, { force, signal: stop.signal })
    process.stderr.write(visible(`${counted(rows, what.slice(0, -1))} of run ${file.runId}: ${out}\n`))
    return 0
  } catch (error) {
    if (code === undefined) throw error
    say(`interrupted; ${out} was not written`)
    return code
  }
}

function formatOf({ format, out }: ExportArgs): Format {
  const ending = FORMATS.find((name) => out?.endsWith(`.${name}`))
  const chosen = format ?? ending
  if (chosen === undefined)
    throw new UsageError(
      `give --format: ${FORMATS.join(', ')}${out === undefined ? '' : `; ${out} does not end with one of them`}`,
    )
  return chosen
}

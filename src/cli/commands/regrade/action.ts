import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import type { TaskGrade } from '../../../grade/grade.ts'
import { type Grader, isGrader } from '../../../grade/grader.ts'
import { regradeRun } from '../../../runners/regrade.ts'
import { shutdown } from '../../../runners/runners.ts'
import { findRun, runFolder } from '../../../store/find-run.ts'
import { newRunId } from '../../../store/run-path.ts'
import { jsonLine } from '../../../text/json.ts'
import { count, counted } from '../../../text/quantities.ts'
import { UsageError } from '../../frame/usage-error.ts'
import { exportsOf, onlyOwnRuns } from '../../script/exports-of.ts'
import { orUncaught } from '../../script/uncaught.ts'
import type { RegradeArgs } from './spec.ts'

/** Grades the answers of a run again. */
export const run = (args: RegradeArgs): Promise<number> => orUncaught(regrade(args))

async function regrade(args: RegradeArgs): Promise<number> {
  if (args.grade === undefined) throw new UsageError('--grade FILE is missing: a module that exports a grader')
  const found = findRun(args.run, runFolder(args.dir))
  const runId = newRunId()
  const grader = await graderIn(args.grade, runId)
  const config = {
    runId,
    gradeTimeoutMs: args.timeout,
    ...(args.workers !== undefined && { workerNum: args.workers }),
    ...(args.concurrency !== undefined && { concurrency: args.concurrency }),
  }
  let graded = 0
  let changed = 0
  let failed = 0
  for await (const { id, before, after } of regradeRun(found, grader, config)) {
    graded++
    if (after.error) failed++
    if (isOther(before, after)) changed++
    if (args.json) process.stdout.write(`${jsonLine({ id, before: before ?? null, after })}\n`)
  }
  await shutdown()
  const problems = failed === 0 ? '' : `; ${counted(failed, 'answer')} could not be graded`
  process.stderr.write(
    `run ${found.runId}: ${counted(graded, 'answer')} graded by '${grader.name}', ${count(changed)} with another result than before${problems}\n`,
  )
  return failed === 0 ? 0 : 1
}

const isOther = (before: TaskGrade | undefined, after: TaskGrade) =>
  before?.reward !== after.reward || before?.success !== after.success

/** `graders.ts`, or `graders.ts#name` if the module exports several. */
async function graderIn(words: string, runId: string): Promise<Grader> {
  const [file, name] = split(words)
  const path = resolve(file)
  if (!existsSync(path)) throw new UsageError(`file not found: ${file}`)
  onlyOwnRuns(path, new Set([runId]))
  const exported = await exportsOf(path)
  const graders = Object.entries(exported).filter(([, value]) => isGrader(value)) as [string, Grader][]
  const names = graders.map(([key]) => key).join(', ')
  if (name !== undefined) {
    const [, found] = graders.find(([key]) => key === name) ?? []
    if (!found) throw new UsageError(`${file} exports no grader '${name}'${names && `; it has ${names}`}`)
    return found
  }
  if (graders.length === 0)
    throw new UsageError(`${file} exports no grader; export what defineGrader() or exactMatch() returned`)
  if (graders.length > 1)
    throw new UsageError(`${file} exports several graders; name one: ${file}#${graders[0]![0]} (${names})`)
  return graders[0]![1]
}

function split(words: string): [file: string, name: string | undefined] {
  const at = words.lastIndexOf('#')
  return at > 0 && !existsSync(words) ? [words.slice(0, at), words.slice(at + 1)] : [words, undefined]
}

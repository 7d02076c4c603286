import { Runners } from '../../dist/index.js'
import { answerOf, storm } from '../agents/storm-nodes.ts'
import { plan } from './storm-plan.ts'

/** The driver of a storm, as a process of its own: it is stopped, killed and started again. */

export interface DriverArgs {
  readonly seed: number
  readonly tasks: number
  readonly store: string
  readonly ledger: string
  readonly session: number
  readonly nodes: object
  /** More of a RunConfig. */
  readonly config: object
}

export interface DriverReport {
  readonly answered: number
  readonly wrong: string[]
  readonly maxRssMb: number
}

const { seed, tasks, store, ledger, session, nodes, config } = JSON.parse(process.argv[2]!) as DriverArgs
const planned = plan(seed, tasks, ledger)

const responses = await Runners.runTask(
  planned.map(({ id, input, options }) => storm.task(input, { id, ...options })),
  {
    engineName: 'nodes',
    nodes,
    store,
    runId: 'storm',
    resume: 'auto',
    concurrency: 4,
    maxAttempts: 20,
    backoffMs: 1,
    env: { STORM_SESSION: String(session) },
    ...config,
  },
)
await Runners.shutdown()

const wrong = planned.flatMap(({ id, input }) => {
  const response = responses.get(id)
  if (response === undefined) return [`${id} (${input.kind}) has no answer`]
  const { status } = response
  const error = response.success ? undefined : response.error
  const told = `${id} (${input.kind}) is ${status} after ${response.attempts} attempts: ${error?.code} ${error?.message}`
  if (input.kind === 'kill') return status === 'crashed' ? [] : [told]
  if (input.kind === 'throw')
    // A worker that was killed may have taken its last attempt with it.
    return (status === 'failed' && error?.message === `${id} throws`) || status === 'crashed' ? [] : [told]
  if (input.kind === 'never' && status === 'crashed') return []
  return response.answer === answerOf(id, input.bytes) ? [] : [told]
})
const report: DriverReport = {
  answered: responses.size,
  wrong,
  maxRssMb: Math.round(process.resourceUsage().maxRSS / 1024),
}
console.log(JSON.stringify(report))

import { setTimeout as sleep } from 'node:timers/promises'
import { jsonLine, safeJson } from '../../../text/json.ts'
import { wantsColor } from '../../../text/paint.ts'
import { UsageError } from '../../frame/usage-error.ts'
import { accessOf } from '../../options/access.ts'
import { NODES_VARIABLE, nodeAddresses } from '../../options/addresses.ts'
import { lookAt, type NodeLook } from './look-at.ts'
import { rowOf } from './node-row.ts'
import { renderNodes } from './render.ts'
import type { NodesArgs } from './spec.ts'

/** Asking more often would put load on the nodes. */
const OFTENEST_MS = 200
const INTERRUPTED = 130
const TO_TOP_AND_CLEAR = '\x1b[H\x1b[J'

/** `manyworlds nodes status` */
export async function run(args: NodesArgs): Promise<number> {
  const addresses = nodeAddresses(args.addresses)
  if (addresses.length === 0)
    throw new UsageError(`no nodes given; give their addresses, such as worker1:5000, or set ${NODES_VARIABLE}`)
  const { watch } = args
  if (watch !== undefined && watch < OFTENEST_MS) throw new UsageError(`--watch must be at least ${OFTENEST_MS}ms`)
  const access = accessOf(args)
  if (watch === undefined) {
    const looks = await lookAt(addresses, access)
    process.stdout.write(args.json ? `${safeJson(JSON.stringify(looks.map(rowOf), null, 2))}\n` : table(looks))
    return looks.every(({ status }) => status !== undefined) ? 0 : 1
  }
  process.once('SIGINT', () => process.exit(INTERRUPTED))
  for (;;) {
    const looks = await lookAt(addresses, access)
    const start = process.stdout.isTTY ? TO_TOP_AND_CLEAR : ''
    process.stdout.write(args.json ? `${jsonLine(looks.map(rowOf))}\n` : `${start}${table(looks)}`)
    await sleep(watch)
  }
}

/** A pipe has no width limit. */
const table = (looks: readonly NodeLook[]) =>
  renderNodes(looks.map(rowOf), {
    color: wantsColor(process.stdout),
    width: process.stdout.columns ?? Number.POSITIVE_INFINITY,
  })

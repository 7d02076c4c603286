import type { Address } from '../network/address.ts'
import { ownPackage } from '../own-package.ts'
import { painter } from './colour.ts'
import type { Check } from './doctor/check.ts'
import { checkMachine } from './doctor/machine.ts'
import { report } from './doctor/report.ts'
import { checkToolchain } from './doctor/toolchain.ts'
import { widthOf } from './layout.ts'
import { nodeAddresses } from './nodes/addresses.ts'
import type { DoctorArgs } from './specs/doctor.ts'

/** `manyworlds doctor` */
export async function run({ json, nodes, ...access }: DoctorArgs): Promise<number> {
  const addresses = nodeAddresses(nodes === undefined ? [] : [nodes])
  const checks = (
    await Promise.all([checkToolchain(), checkMachine(), addresses.length === 0 ? [] : askNodes(addresses, access)])
  ).flat()
  const ok = checks.every(({ required, status }) => !required || status === 'ok')
  process.stdout.write(
    json
      ? `${JSON.stringify({ ok, version: ownPackage.version, checks }, null, 2)}\n`
      : report(checks, { width: widthOf(process.stdout), paint: painter(process.stdout) }),
  )
  return ok ? 0 : 1
}

/** Loaded when there are nodes to ask: the rest of this command runs on an old Node too. */
async function askNodes(
  addresses: readonly Address[],
  access: Pick<DoctorArgs, 'tokenFile' | 'tlsCa'>,
): Promise<readonly Check[]> {
  const [{ accessOf }, { checkNodes }] = await Promise.all([import('./nodes/access.ts'), import('./doctor/nodes.ts')])
  return checkNodes(addresses, accessOf(access))
}

import type { TypedPlace } from '../../../engines/definition.ts'
import { ownPackage } from '../../../own-package.ts'
import { pageWidth } from '../../../text/columns.ts'
import { safeJson } from '../../../text/json.ts'
import { painterFor } from '../../../text/paint.ts'
import type { Check } from './check.ts'
import { doctors } from './engine-doctors.ts'
import { checkMachine } from './machine.ts'
import { report } from './report.ts'
import type { DoctorArgs } from './spec.ts'
import { checkToolchain } from './toolchain.ts'

/** `manyworlds doctor` */
export async function run(args: DoctorArgs): Promise<number> {
  const [toolchain, machine, engines] = await Promise.all([checkToolchain(), checkMachine(), askEngines(args)])
  const checks = [...toolchain, ...machine, ...engines.flat()]
  const ok = checks.every(({ required, status }) => !required || status === 'ok')
  process.stdout.write(
    args.json
      ? `${safeJson(JSON.stringify({ ok, version: ownPackage.version, checks }, null, 2))}\n`
      : report(checks, { width: pageWidth(process.stdout), paint: painterFor(process.stdout) }),
  )
  return ok ? 0 : 1
}

/** Engines check what they need on this machine, and contact the nodes or the cluster that the options name. */
function askEngines(args: DoctorArgs): Promise<(readonly Check[])[]> {
  const { tokenFile: _, tlsCa: __, ...others } = args
  // A typed token must be sent only to the nodes or the cluster that was typed with it.
  const named = doctors.find(({ owns }) => owns !== undefined && (args as TypedPlace)[owns] !== undefined)
  return Promise.all(
    doctors.map((doctor) => doctor.check(named === undefined || named === doctor ? args : { ...others })),
  )
}

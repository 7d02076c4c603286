import { ownPackage } from '../own-package.ts'
import { painter } from './colour.ts'
import { checkMachine } from './doctor/machine.ts'
import { report } from './doctor/report.ts'
import { checkToolchain } from './doctor/toolchain.ts'
import { widthOf } from './layout.ts'
import type { DoctorArgs } from './specs/doctor.ts'

/** `manyworlds doctor` */
export async function run({ json }: DoctorArgs): Promise<number> {
  const [tools, machine] = await Promise.all([checkToolchain(), checkMachine()])
  const checks = [...tools, ...machine]
  const ok = checks.every(({ required, status }) => !required || status === 'ok')
  process.stdout.write(
    json
      ? `${JSON.stringify({ ok, version: ownPackage.version, checks }, null, 2)}\n`
      : report(checks, { width: widthOf(process.stdout), paint: painter(process.stdout) }),
  )
  return ok ? 0 : 1
}

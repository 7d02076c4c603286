import { ownPackage } from '../own-package.ts'
import { safeJson } from '../text/json.ts'
import { painter } from './colour.ts'
import type { Check } from './doctor/check.ts'
import { checkMachine } from './doctor/machine.ts'
import { report } from './doctor/report.ts'
import { checkToolchain } from './doctor/toolchain.ts'
import { widthOf } from './layout.ts'
import { nodeAddresses } from './nodes/addresses.ts'
import { remoteOfEnvironment, typedRemote } from './spark-remote.ts'
import type { DoctorArgs } from './specs/doctor.ts'

/** `manyworlds doctor` */
export async function run(args: DoctorArgs): Promise<number> {
  const checks = (await Promise.all([checkToolchain(), checkMachine(), askNodes(args), askSpark(args)])).flat()
  const ok = checks.every(({ required, status }) => !required || status === 'ok')
  process.stdout.write(
    args.json
      ? `${safeJson(JSON.stringify({ ok, version: ownPackage.version, checks }, null, 2))}\n`
      : report(checks, { width: widthOf(process.stdout), paint: painter(process.stdout) }),
  )
  return ok ? 0 : 1
}

/** What asks nodes is loaded when there are some: the rest of this command runs on an old Node too. */
async function askNodes({ nodes, sparkRemote, tokenFile, tlsCa }: DoctorArgs): Promise<readonly Check[]> {
  const addresses = nodeAddresses(nodes === undefined ? [] : [nodes])
  if (addresses.length === 0) return []
  const [{ accessOf }, { checkNodes }] = await Promise.all([import('./nodes/access.ts'), import('./doctor/nodes.ts')])
  // Beside a cluster that was typed, they are the cluster's.
  const typed = sparkRemote === undefined ? { tokenFile, tlsCa } : { tokenFile: undefined, tlsCa: undefined }
  return checkNodes(addresses, accessOf(typed))
}

async function askSpark({ sparkRemote, tokenFile, tlsCa }: DoctorArgs): Promise<readonly Check[]> {
  const around = remoteOfEnvironment()
  // PySpark takes SPARK_REMOTE=local as well, which is no cluster.
  if (sparkRemote === undefined && !around?.startsWith('sc://')) return []
  const { checkSparkCluster } = await import('./doctor/spark-cluster.ts')
  // A token that was typed is for what was typed, and for nobody else.
  if (sparkRemote === undefined) return [await checkSparkCluster({ remote: around! }, false)]
  const tls = tlsCa === undefined ? {} : { remoteTls: { ca: tlsCa } }
  return [await checkSparkCluster({ remote: typedRemote(sparkRemote, tokenFile), ...tls }, true)]
}

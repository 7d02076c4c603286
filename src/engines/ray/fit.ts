import { ManyworldsError } from '../../errors.ts'
import type { RayNode } from './bridge.ts'
import type { RayOptions } from './options.ts'

/** The resources of one worker, by Ray's names. */
export function demandOf({ numCpus = 1, numGpus = 0, memory = 0, resources = {} }: RayOptions): Record<string, number> {
  const all = { CPU: numCpus, GPU: numGpus, memory, ...resources }
  return Object.fromEntries(Object.entries(all).filter(([, amount]) => amount > 0))
}

/** The machines on which workers may run. */
export function nodesFor({ schedulingStrategy }: RayOptions, nodes: readonly RayNode[]): readonly RayNode[] {
  if (typeof schedulingStrategy !== 'object' || schedulingStrategy.soft) return nodes
  return nodes.filter(({ id }) => id === schedulingStrategy.nodeId)
}

/** How many workers fit on the machines if they are otherwise unused. */
export function roomFor(demand: Readonly<Record<string, number>>, nodes: readonly RayNode[]): number {
  let room = 0
  for (const { resources } of nodes) {
    const fits = Object.entries(demand).map(([name, amount]) => Math.floor((resources[name] ?? 0) / amount + 1e-9))
    // Workers without resource needs fit anywhere, any number of times; the machine's cores are a sensible bound.
    room += fits.length === 0 ? (resources.CPU ?? 1) : Math.min(...fits)
  }
  return room
}

/** Throws if these machines can never hold a worker. */
export function refuseTheImpossible(options: RayOptions, nodes: readonly RayNode[]): void {
  const { schedulingStrategy, autoscaling } = options
  const usable = nodesFor(options, nodes)
  if (typeof schedulingStrategy === 'object' && usable.length === 0)
    throw new ManyworldsError(
      'RAY_IMPOSSIBLE',
      `the Ray cluster has no node ${schedulingStrategy.nodeId}, which ray.schedulingStrategy names. It has: ${nodes.map(({ id, host }) => `${id} (${host})`).join(', ')}. Give one of these, or set soft: true`,
    )
  const demand = demandOf(options)
  if (autoscaling || roomFor(demand, usable) > 0) return
  throw new ManyworldsError(
    'RAY_IMPOSSIBLE',
    `no node of the Ray cluster can ever hold a worker: each asks for ${showResources(demand)}, and there is ${showNodes(usable)}. Ask for less, or set ray.autoscaling: true if the cluster grows`,
  )
}

export const showResources = (resources: Readonly<Record<string, number>>): string =>
  Object.entries(resources)
    .filter(([name]) => !name.startsWith('node:') && name !== 'object_store_memory')
    .map(([name, amount]) => (name === 'memory' ? `${(amount / 2 ** 30).toFixed(1)} GB memory` : `${amount} ${name}`))
    .join(', ') || 'nothing'

const showNodes = (nodes: readonly RayNode[]): string =>
  nodes.map(({ host, resources }) => `${host}: ${showResources(resources)}`).join('; ')

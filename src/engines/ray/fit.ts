import type { RayNode } from './bridge.ts'
import type { RayOptions } from './options.ts'

/** What one worker takes, by Ray's names of resources. */
export function demandOf({ numCpus = 1, numGpus = 0, memory = 0, resources = {} }: RayOptions): Record<string, number> {
  const all = { CPU: numCpus, GPU: numGpus, memory, ...resources }
  return Object.fromEntries(Object.entries(all).filter(([, amount]) => amount > 0))
}

/** The machines on which workers may run. */
export function nodesFor({ schedulingStrategy }: RayOptions, nodes: readonly RayNode[]): readonly RayNode[] {
  if (typeof schedulingStrategy !== 'object' || schedulingStrategy.soft) return nodes
  return nodes.filter(({ id }) => id === schedulingStrategy.nodeId)
}

/** How many workers the machines have room for, if nobody else uses them. */
export function roomFor(demand: Readonly<Record<string, number>>, nodes: readonly RayNode[]): number {
  let room = 0
  for (const { resources } of nodes) {
    const fits = Object.entries(demand).map(([name, amount]) => Math.floor((resources[name] ?? 0) / amount + 1e-9))
    // Workers that take nothing fit anywhere, as often as one likes; a machine of cores is a sensible bound.
    room += fits.length === 0 ? (resources.CPU ?? 1) : Math.min(...fits)
  }
  return room
}

export const showResources = (resources: Readonly<Record<string, number>>): string =>
  Object.entries(resources)
    .filter(([name]) => !name.startsWith('node:') && name !== 'object_store_memory')
    .map(([name, amount]) => (name === 'memory' ? `${(amount / 2 ** 30).toFixed(1)} GB memory` : `${amount} ${name}`))
    .join(', ') || 'nothing'

export const showNodes = (nodes: readonly RayNode[]): string =>
  nodes.map(({ host, resources }) => `${host}: ${showResources(resources)}`).join('; ')

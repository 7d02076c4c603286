import type { HostStatus } from '../../../network/host-messages.ts'
import { type NodeLook, problemOf } from './look-at.ts'

type Info = Omit<HostStatus['info'], 'machine'>

/** A row of the table, and an element of the JSON of `--json`. */
export type NodeRow = UsableNode | UnusableNode

export interface UsableNode extends Info, Pick<HostStatus, 'upSeconds' | 'loadAverage' | 'freeMemoryMb' | 'drivers'> {
  readonly address: string
  readonly state: 'up' | 'draining'
  /** How many of its `workers` drivers use. */
  readonly workersInUse: number
  readonly tasks: number
}

export interface UnusableNode {
  readonly address: string
  readonly state: 'unusable'
  readonly problem: string
}

export function rowOf({ address, status, error }: NodeLook): NodeRow {
  if (status === undefined) return { address, state: 'unusable', problem: problemOf(error) }
  const { draining, upSeconds, loadAverage, freeMemoryMb, drivers } = status
  const { machine: _, ...info } = status.info
  const sum = (key: 'workers' | 'tasks') => drivers.reduce((total, driver) => total + driver[key], 0)
  return {
    ...{ address, state: draining ? 'draining' : 'up', workersInUse: sum('workers'), tasks: sum('tasks') },
    ...{ ...info, upSeconds, loadAverage, freeMemoryMb, drivers },
  }
}

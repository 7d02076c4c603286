import { createHash } from 'node:crypto'
import { readFileSync, readlinkSync } from 'node:fs'
import { isAlive } from '../is-alive.ts'

/** A process of another end, as that end has named it. */
export interface NamedProcess {
  readonly machine?: string | undefined
  readonly pid: number
}

/**
 * The boot of this machine and the namespace of its process ids: for all who have the same, a pid is the same process. Undefined
 * where that cannot be known (other systems than Linux).
 */
function readMachine(): string | undefined {
  try {
    const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8')
    return createHash('sha256').update(boot).update(readlinkSync('/proc/self/ns/pid')).digest('hex')
  } catch {
    return undefined
  }
}

let machine: { readonly name: string | undefined } | undefined
export const thisMachine = (): string | undefined => {
  machine ??= { name: readMachine() }
  return machine.name
}

/** Whether these processes are known to have ended: they ran on this machine, and none of them is there. */
export const haveEnded = ({ machine, pid }: NamedProcess, others: readonly number[] = []): boolean =>
  machine !== undefined && machine === thisMachine() && [pid, ...others].every((one) => !runs(one))

function runs(pid: number): boolean {
  if (!isAlive(pid)) return false
  try {
    // A zombie runs nothing; its parent has not asked for its exit code yet.
    return !/^\d+ \(.*\) Z/s.test(readFileSync(`/proc/${pid}/stat`, 'utf8'))
  } catch {
    return isAlive(pid)
  }
}

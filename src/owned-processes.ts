import { readdirSync, readFileSync } from 'node:fs'

/**
 * In the environment of each worker, and so of the processes that its tasks start, and of what those start. It finds
 * processes that left the worker's process group and session (`detached: true`, `setsid`, a double fork).
 */
export const OWNER_VARIABLE = 'MANYWORLDS_OWNER'

const ENTRY = `${OWNER_VARIABLE}=`
/** A process may start another one while its own end comes, so a search that found one is repeated. */
const MAX_SEARCHES = 5

/**
 * Ends the processes that these owners' tasks started, except this one. Only on Linux: elsewhere, the environment of another
 * process cannot be read. A process that another user runs, or that started without the variable, is not found.
 */
export function endOwnedProcesses(owners: ReadonlySet<string>): void {
  if (process.platform !== 'linux' || owners.size === 0) return
  const found = new Set<number>([process.pid])
  for (let searches = 0; searches < MAX_SEARCHES; searches++) {
    const before = found.size
    for (const pid of allProcesses()) {
      if (found.has(pid)) continue
      const owner = ownerOf(pid)
      if (owner === undefined || !owners.has(owner)) continue
      found.add(pid)
      try {
        process.kill(pid, 'SIGKILL')
      } catch {
        // It has ended since.
      }
    }
    if (found.size === before) return
  }
}

function allProcesses(): number[] {
  try {
    return readdirSync('/proc').map(Number).filter(Number.isInteger)
  } catch {
    return []
  }
}

/** The owner named in the environment with which a process was started. */
function ownerOf(pid: number): string | undefined {
  try {
    // Each byte is one character, so that a variable with other bytes than UTF-8 changes nothing.
    const variables = readFileSync(`/proc/${pid}/environ`, 'latin1')
    if (!variables.includes(ENTRY)) return undefined
    return variables
      .split('\0')
      .find((variable) => variable.startsWith(ENTRY))
      ?.slice(ENTRY.length)
  } catch {
    // It has ended, or another user runs it.
    return undefined
  }
}

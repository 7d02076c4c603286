import { readdirSync, readFileSync } from 'node:fs'

/** Children, grandchildren and so on, by what the kernel says. */
export function childrenOf(pid: number): number[] {
  const parents = new Map<number, number>()
  for (const name of pids())
    try {
      const stat = readFileSync(`/proc/${name}/stat`, 'utf8')
      parents.set(name, Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]))
    } catch {
      // It ended while we looked.
    }
  const found = [pid]
  for (let i = 0; i < found.length; i++)
    for (const [child, parent] of parents) if (parent === found[i]) found.push(child)
  return found.slice(1)
}

/** Every process of this machine. */
export const pids = (): number[] =>
  readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)

/** Sends a signal, if there is still somebody to get it. */
export function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name)
  } catch {
    // It is gone.
  }
}

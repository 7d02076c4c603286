import { readFileSync } from 'node:fs'
import type { ProcessLink } from '../engines/worker-process.ts'

const PAGE_BYTES = 4096

/** Ends workers that exceed their memory limit, before the system's OOM killer chooses a process. */
export function guardMemory(links: readonly ProcessLink[], limitMb: number): void {
  for (const link of links) {
    const usedMb = residentMb(link.info.pid)
    if (usedMb > limitMb)
      link.killFor(`it used ${Math.round(usedMb)} MB, and ${limitMb} is the most a worker may use on this node`)
  }
}

/** 0 if the system does not report it. */
function residentMb(pid: number | undefined): number {
  try {
    const pages = Number(readFileSync(`/proc/${pid}/statm`, 'utf8').split(' ')[1])
    return (pages * PAGE_BYTES) / 2 ** 20
  } catch {
    return 0
  }
}

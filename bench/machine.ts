import { cpus, totalmem } from 'node:os'

/** What the figures were measured on, in one line. */
export function describeMachine(): string {
  const all = cpus()
  return `Machine: ${all.length} x ${all[0]?.model ?? 'unknown CPU'}, ${Math.round(totalmem() / 2 ** 30)} GB, ${process.platform}, Node ${process.version}`
}

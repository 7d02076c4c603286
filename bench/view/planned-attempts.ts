import type { TaskStatus } from '../../src/task.ts'
import { pick, type Random } from './made-steps.ts'

/** An attempt of the made run: when and where it ran, and how it ended. */
export interface PlannedAttempt {
  readonly task: number
  readonly attempt: number
  readonly isFinal: boolean
  readonly worker: number
  readonly startedAt: number
  readonly endedAt: number
  readonly queuedMs: number
  readonly status: TaskStatus
}

export const WORKERS = 12
const AT_ONCE = 8

/** Places the attempts of all tasks on workers, and returns them in the order in which they end. */
export function planAttempts(tasks: number, from: number, random: Random): PlannedAttempt[] {
  const free = Array.from({ length: WORKERS * AT_ONCE }, () => from + random() * 300)
  const attempts: PlannedAttempt[] = []
  let lane = 0
  for (let task = 1; task <= tasks; task++) {
    const tries = random() < 0.04 ? 2 : 1
    for (let attempt = 1; attempt <= tries; attempt++) {
      // The next lane in turn, or a freer one: almost as even as the least loaded lane, and cheap.
      const other = Math.floor(random() * free.length)
      lane = (lane + 1) % free.length
      const at = free[other]! < free[lane]! ? other : lane
      const startedAt = Math.round(free[at]!)
      const endedAt = startedAt + Math.round(120 * Math.exp(2.2 * random()) + (random() < 0.01 ? 4000 : 0))
      free[at] = endedAt + random() * 3
      const isFinal = attempt === tries
      const status = isFinal ? statusOf(random) : pick(['failed', 'crashed', 'timeout'] as const, random)
      const worker = 1 + Math.floor(at / AT_ONCE)
      attempts.push({ task, attempt, isFinal, worker, startedAt, endedAt, queuedMs: random() * 50, status })
    }
  }
  return attempts.sort((a, b) => a.endedAt - b.endedAt)
}

function statusOf(random: Random): TaskStatus {
  const draw = random()
  if (draw < 0.9) return 'success'
  if (draw < 0.96) return 'failed'
  if (draw < 0.98) return 'timeout'
  return draw < 0.995 ? 'crashed' : 'cancelled'
}

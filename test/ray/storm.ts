import { setTimeout as sleep } from 'node:timers/promises'
import { Runners } from '../../dist/index.js'
import { seeded } from '../../src/random.ts'
import { type LargeInput, large, textOf } from '../agents/storm-ray.ts'
import { linesOf } from '../ledger.ts'
import { childrenOf, signal } from '../process-tree.ts'
import { below, type RayCluster } from './cluster.ts'

const TASKS = 60
const LEAST_BYTES = 1e6
const MORE_BYTES = 4e6
/** Between two kills, on average. */
const EVERY_MS = 1000
const KILLS = 8

type Victim = 'workers' | 'actors' | 'raylets'

/** Tasks with inputs and answers of 1 to 5 MB, while processes of the cluster are killed. Answers what was not right. */
export async function rayStorm(
  cluster: RayCluster,
  seed: number,
  ledger: string,
): Promise<{ happened: Record<Victim, number>; problems: string[] }> {
  const random = seeded(seed)
  const bytes = () => Math.floor(LEAST_BYTES + MORE_BYTES * random())
  const inputs = new Map<string, LargeInput>()
  for (let i = 0; i < TASKS; i++) {
    const id = `t${i}`
    inputs.set(id, { ledger, ms: 50 + 250 * random(), text: textOf(id, bytes()), answerBytes: bytes() })
  }
  const happened: Record<Victim, number> = { workers: 0, actors: 0, raylets: 0 }
  let over = false
  const killing = killAtRandom(cluster, random, happened, () => over)
  const problems: string[] = []
  const answered = new Map<string, number>()
  try {
    const { address, tokenFile } = cluster
    const tasks = [...inputs].map(([id, input]) => large.task(input, { id }))
    const config = { workerNum: 4, concurrency: 4, maxAttempts: 20, backoffMs: 1 }
    for await (const response of Runners.streamTask(tasks, {
      engineName: 'ray',
      ray: { address, tokenFile },
      ...config,
    })) {
      const { id, status } = response
      answered.set(id, (answered.get(id) ?? 0) + 1)
      if (!response.success) problems.push(`${id} is ${status}: ${response.error.message}`)
      else if (response.answer !== textOf(`answer-${id}`, inputs.get(id)!.answerBytes))
        problems.push(`${id} has the answer of another, or a part of its own`)
    }
  } finally {
    over = true
    await killing
  }
  const started = new Set(linesOf(ledger, 'start').map((line) => line.split(' ')[1]))
  for (const id of inputs.keys()) {
    if (answered.get(id) !== 1) problems.push(`${id} was answered ${answered.get(id) ?? 0} times`)
    if (!started.has(id)) problems.push(`${id} was answered, and never started`)
  }
  return { happened, problems }
}

/** Mostly workers, some actors, and once a raylet with everything below it, which gets a successor. */
async function killAtRandom(
  cluster: RayCluster,
  random: () => number,
  happened: Record<Victim, number>,
  over: () => boolean,
): Promise<void> {
  const rayletAt = 2 + Math.floor((KILLS / 2) * random())
  let joining: Promise<unknown> | undefined
  for (let kills = 0; kills < KILLS && !over(); ) {
    await sleep(2 * EVERY_MS * random())
    const pick = random()
    const kind: Victim = kills === rayletAt ? 'raylets' : pick < 0.6 ? 'workers' : 'actors'
    // Not the head: without it there is no cluster.
    const raylets = cluster.raylets.slice(1).filter(({ pid }) => below(pid).actors.length > 0)
    const candidates = (kind === 'raylets' ? raylets : cluster.raylets.flatMap(({ pid }) => below(pid)[kind])).map(
      ({ pid }) => pid,
    )
    const pid = candidates[Math.floor(candidates.length * random())]
    if (pid === undefined || over()) continue
    for (const one of kind === 'raylets' ? [pid, ...childrenOf(pid)] : [pid]) signal(one, 'SIGKILL')
    happened[kind]++
    kills++
    if (kind === 'raylets') joining = cluster.addRaylet()
  }
  await joining
}

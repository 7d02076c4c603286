import { setTimeout as sleep } from 'node:timers/promises'
import { Runners } from '../../dist/index.js'
import { seeded } from '../../src/random.ts'
import { type LargeInput, large, textOf } from '../agents/storm-ray.ts'
import { linesOf } from '../support/ledger.ts'
import { childrenOf, signal } from '../support/process-tree.ts'
import { below, type RayCluster } from './cluster.ts'

/** At least so many: the run goes on until the last kill. */
const LEAST_TASKS = 60
const MOST_TASKS = 1000
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
  // Those of the inputs do not depend on when the kills happen.
  const inputRandom = seeded(seed + 1)
  const bytes = () => Math.floor(LEAST_BYTES + MORE_BYTES * inputRandom())
  const answerBytes = new Map<string, number>()
  const happened: Record<Victim, number> = { workers: 0, actors: 0, raylets: 0 }
  let over = false
  let calm = false
  const signals = {
    over: () => over,
    calm: () => {
      calm = true
    },
  }
  const killing = killAtRandom(cluster, random, happened, signals)
  function* tasks() {
    for (let i = 0; i < LEAST_TASKS || (!calm && i < MOST_TASKS); i++) {
      const id = `t${i}`
      const input: LargeInput = {
        ...{ ledger, ms: 50 + 250 * inputRandom(), text: textOf(id, bytes()), answerBytes: bytes() },
      }
      answerBytes.set(id, input.answerBytes)
      yield large.task(input, { id })
    }
  }
  const problems: string[] = []
  const answered = new Map<string, number>()
  try {
    const { address, tokenFile } = cluster
    const config = { workerNum: 4, concurrency: 4, maxAttempts: 20, backoffMs: 1 }
    for await (const response of Runners.streamTask(tasks(), {
      engineName: 'ray',
      ray: { address, tokenFile },
      ...config,
    })) {
      const { id, status } = response
      answered.set(id, (answered.get(id) ?? 0) + 1)
      if (!response.success) problems.push(`${id} is ${status}: ${response.error.message}`)
      else if (response.answer !== textOf(`answer-${id}`, answerBytes.get(id)!))
        problems.push(`${id} has the answer of another, or a part of its own`)
    }
  } finally {
    over = true
    await killing
  }
  const started = new Set(linesOf(ledger, 'start').map((line) => line.split(' ')[1]))
  for (const id of answerBytes.keys()) {
    if (answered.get(id) !== 1) problems.push(`${id} was answered ${answered.get(id) ?? 0} times`)
    if (!started.has(id)) problems.push(`${id} was answered, and never started`)
  }
  return { happened, problems }
}

/** Mostly workers (first of all one of them), some actors, and once a raylet with everything below it, which gets a successor. */
async function killAtRandom(
  cluster: RayCluster,
  random: () => number,
  happened: Record<Victim, number>,
  { over, calm }: { over(): boolean; calm(): void },
): Promise<void> {
  const rayletAt = 2 + Math.floor((KILLS / 2) * random())
  let joining: Promise<unknown> | undefined
  for (let kills = 0; kills < KILLS && !over(); ) {
    await sleep(2 * EVERY_MS * random())
    const pick = random()
    const kind: Victim = kills === rayletAt ? 'raylets' : kills === 0 || pick < 0.6 ? 'workers' : 'actors'
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
  calm()
  await joining
}

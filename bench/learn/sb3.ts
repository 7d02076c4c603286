import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { STABLE_BASELINES3 } from '../../test/python/environments.ts'
import { pythonOf } from '../../test/python/locked.ts'

export const SB3_WORLDS = ['FrozenLake-v1', 'CartPole-v1'] as const
export type Sb3World = (typeof SB3_WORLDS)[number]

/** What it took Stable-Baselines3 to reach the threshold of a world; bench/learn/sb3.py says how that is judged. */
export interface Sb3Row {
  readonly world: Sb3World
  readonly seed: number
  /** Without the checks, and without loading the libraries. */
  readonly seconds: number
  readonly cpuSeconds: number
  readonly episodes: number
  readonly steps: number
  /** False: not within the most steps that it was given. */
  readonly reached: boolean
}

const ERROR_CHARS = 3000

/** Learns each world with each seed, one after the other, on one thread. Rows come as they are done. */
export async function* sb3Rows(
  seeds: readonly number[],
  worlds: readonly Sb3World[] = SB3_WORLDS,
): AsyncGenerator<Sb3Row> {
  const python = await pythonOf(STABLE_BASELINES3)
  const script = fileURLToPath(new URL('sb3.py', import.meta.url))
  const env = { ...process.env, OMP_NUM_THREADS: '1', CUDA_VISIBLE_DEVICES: '' }
  const child = spawn(python, [script, JSON.stringify({ worlds, seeds })], { env, stdio: ['ignore', 'pipe', 'pipe'] })
  let errors = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    errors = (errors + text).slice(-ERROR_CHARS)
  })
  const ended = new Promise<number | string>((resolve) => {
    child.once('error', (error) => resolve(error.message))
    child.once('close', (code, signal) => resolve(signal ?? code ?? 1))
  })
  try {
    for await (const line of createInterface({ input: child.stdout })) yield JSON.parse(line) as Sb3Row
    const how = await ended
    if (how !== 0) throw new Error(`${script} ended with ${how}: ${errors}`)
  } finally {
    child.kill('SIGKILL')
  }
}

// By itself: `node bench/learn/sb3.ts CartPole-v1 1 2 3`
if (import.meta.main) {
  const words = process.argv.slice(2)
  const seeds = words.map(Number).filter(Number.isInteger)
  const worlds = SB3_WORLDS.filter((world) => words.includes(world))
  const rows = sb3Rows(seeds.length > 0 ? seeds : [1], worlds.length > 0 ? worlds : SB3_WORLDS)
  for await (const row of rows) console.log(JSON.stringify(row))
}

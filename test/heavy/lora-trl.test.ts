import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { LoraCore } from '../../dist/train/lora/lora-core.js'
import { TRL } from '../python/environments.ts'
import { PYTHON_SET_UP_MS, pythonOf, runPython, whyNoPython } from '../python/locked.ts'
import {
  closeSidecars,
  largestGap,
  numbers,
  someRollouts,
  TINY,
  tiny,
  tinyCore,
  tokenRow,
  whyNoLora,
} from './lora/tiny.ts'
import { MODEL_LOSS_CASES } from './lora/trl-cases.ts'

/** How much two ways to compute the same in float32 may differ. */
const CLOSE = 1e-6
/** Below a minute, most of it imports; the rest is for machines that are busy. */
const CHECK_MS = 400_000
const TEMPERATURE = 0.8
const MICRO_BATCH = 3

interface Found {
  readonly loss: number
  readonly gradient: Readonly<Record<string, readonly number[]>>
}

const rollouts = someRollouts(3, 4)
const folder = mkdtempSync(join(tmpdir(), 'manyworlds-lora-trl-'))
let why: string | undefined
let core: LoraCore
let found: readonly Found[]
/** Of the policy that acted: near those of the adapter, so that ratios meet every bound. */
let old: readonly (readonly number[])[]

const rowsFor = (weight: (at: number) => number) =>
  rollouts.map((one, at) => tokenRow(one, old[at]!, weight(at), { temperature: TEMPERATURE }))

beforeAll(async () => {
  why = (await whyNoLora()) ?? (await whyNoPython(TRL))
  if (why !== undefined) return
  core = tinyCore()
  old = rollouts.map(({ completion }) => completion.map(() => -4))
  // An adapter that has learned nothing is 0 in one of its matrices, and hides mistakes.
  for (let step = 0; step < 3; step++) {
    await core.forwardBackward(
      rowsFor(() => 1 / 50),
      { name: 'reinforce' },
    )
    await core.optimStep({ lr: 0.02 })
  }
  const random = numbers(3)
  const { logProbs } = await core.forward(
    rowsFor(() => 1),
    'current',
  )
  old = rollouts.map(({ prompt, completion }, at) =>
    completion.map((_, i) => Math.fround(logProbs[at]![prompt.length + i]! + 1.2 * random() - 0.6)),
  )
  const adapter = join(folder, 'adapter.safetensors')
  writeFileSync(adapter, await core.weights())
  const input = {
    ...{ folder, adapter, config: TINY, seed: tiny.seed, alpha: tiny.alpha, rank: tiny.rank, temperature: TEMPERATURE },
    rows: rollouts.map((one, at) => ({ ...one, old: old[at] })),
    cases: MODEL_LOSS_CASES.map(({ config }) => config),
  }
  const env = {
    ...{ HF_HOME: folder, HF_HUB_OFFLINE: '1', TRL_EXPERIMENTAL_SILENCE: '1', CUDA_VISIBLE_DEVICES: '' },
    ...{ OMP_NUM_THREADS: '1', ONEDNN_MAX_CPU_ISA: 'AVX512_CORE_BF16' },
  }
  const script = new URL('python/trl_lora_check.py', import.meta.url)
  found = (await runPython(await pythonOf(TRL), script, { input, env, timeoutMs: CHECK_MS })) as readonly Found[]
}, PYTHON_SET_UP_MS)
afterAll(async () => {
  await core?.[Symbol.asyncDispose]()
  await closeSidecars()
  rmSync(folder, { recursive: true, force: true })
})

describe('loss and gradient of a model are those of TRL', () => {
  it.for(MODEL_LOSS_CASES.map((one, index) => ({ ...one, index })))('$name', async ({ index, ...one }, { skip }) => {
    if (why !== undefined) skip(why)
    const rows = rowsFor((at) => one.weight(rollouts[at]!, rollouts))
    await core.load(await core.state())
    let loss = Number.NaN
    for (let at = 0; at < rows.length; at += MICRO_BATCH)
      loss = (await core.forwardBackward(rows.slice(at, at + MICRO_BATCH), one.ours)).loss!
    const gradient = await core.gradient()
    const theirs = found[index]!
    expect(Math.abs(loss - theirs.loss)).toBeLessThan(CLOSE)
    const names = [...gradient.keys()]
    expect(names.map((name) => name.replace('.default', '')).sort()).toEqual(Object.keys(theirs.gradient).sort())
    const ours = names.map((name) => gradient.get(name)!)
    const same = names.map((name) => theirs.gradient[name.replace('.default', '')]!)
    expect(Math.max(...ours.flatMap((part) => Array.from(part, Math.abs)))).toBeGreaterThan(1e-3)
    expect(largestGap(ours, same)).toBeLessThan(CLOSE)
  })
})

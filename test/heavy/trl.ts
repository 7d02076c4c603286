import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { TRL } from '../python/environments.ts'
import { pythonOf, runPython } from '../python/locked.ts'
import type { LossCase } from './loss-cases.ts'

/** Below a minute, most of it imports; the rest is for machines that are busy. */
const CHECK_MS = 240_000

export interface Trained {
  readonly losses: readonly number[]
  /** Whether the weights changed. */
  readonly moved: boolean
}

export interface TrlCheck {
  readonly sft: Trained & { readonly seen: readonly { readonly text: string; readonly learned: string }[] }
  /** What is learned of the two better ones, and then of the two worse ones. */
  readonly preference: Trained & { readonly learned: readonly string[] }
  readonly verl: Trained & { readonly learned: readonly (readonly number[])[] }
  readonly grpo: Trained & {
    readonly rewards: readonly number[]
    /** What TRL's loss was given at the first step: its tensors, by name. */
    readonly first: Readonly<Record<string, readonly (readonly number[])[]>> & {
      readonly advantages: readonly number[]
    }
  }
  readonly losses: readonly { readonly loss: number; readonly byLogProb: readonly (readonly number[])[] }[]
}

/** Files of exports by format, and cases of losses: what TRL makes of them, in one process that imports PyTorch once. */
export async function askTrl(
  files: Readonly<Record<'sft' | 'verl' | 'trl' | 'preference', string>>,
  losses: readonly LossCase[],
): Promise<TrlCheck> {
  const folder = mkdtempSync(join(tmpdir(), 'manyworlds-trl-'))
  const script = new URL('python/trl_check.py', import.meta.url)
  try {
    const input = { folder, ...files, losses }
    const env = torchEnv(folder)
    return (await runPython(await pythonOf(TRL), script, { input, env, timeoutMs: CHECK_MS })) as TrlCheck
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** One thread, no GPU, no hub. */
export const torchEnv = (home: string): Record<string, string> => ({
  ...{ HF_HOME: home, HF_HUB_OFFLINE: '1', TRL_EXPERIMENTAL_SILENCE: '1', CUDA_VISIBLE_DEVICES: '' },
  // Some CPUs say that they have AMX, and do not allow it.
  ...{ OMP_NUM_THREADS: '1', ONEDNN_MAX_CPU_ISA: 'AVX512_CORE_BF16' },
})

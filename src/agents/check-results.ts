import { isDeepStrictEqual } from 'node:util'
import { TaskError } from '../errors.ts'
import type { ResetResult, StepResult } from './environment.ts'
import type { Choice } from './policy.ts'

/** Checks of what users' environments and policies return. They are written by hand because they run for every step. */

export type AnyReset = ResetResult<unknown, unknown, unknown>
export type AnyStep = StepResult<unknown, unknown, unknown>

export function checkReset(result: unknown, environment: string): asserts result is AnyReset {
  const where = `reset of environment '${environment}'`
  if (typeof result !== 'object' || result === null)
    throw fault(`${where} returned ${shown(result)}; return { state, observation }`)
  const { observation, candidates } = result as Partial<AnyReset>
  if (observation === undefined) throw fault(`${where} returned no \`observation\`; return { state, observation }`)
  if (candidates !== undefined) checkCandidates(candidates, where)
}

export function checkStep(result: unknown, environment: string, step: number): asserts result is AnyStep {
  const where = `step ${step} of environment '${environment}'`
  if (typeof result !== 'object' || result === null)
    throw fault(`${where} returned ${shown(result)}; return { observation, reward, done }`)
  const { observation, reward, rewards, done, truncated, success, candidates } = result as Partial<AnyStep>
  if (observation === undefined)
    throw fault(`${where} returned no \`observation\`; return { observation, reward, done }`)
  if (!Number.isFinite(reward))
    throw fault(
      `${where} returned the reward ${shown(reward)}; return a finite number, 0 if there is nothing to reward`,
    )
  if (typeof done !== 'boolean') throw fault(`${where} returned ${shown(done)} as \`done\`; return true or false`)
  if (truncated !== undefined && typeof truncated !== 'boolean' && truncated !== 'unknown')
    throw fault(`${where} returned ${shown(truncated)} as \`truncated\`; return true, false or 'unknown'`)
  if (success !== undefined && success !== null && typeof success !== 'boolean')
    throw fault(`${where} returned ${shown(success)} as \`success\`; return true, false or null`)
  if (rewards !== undefined) checkRewards(rewards, where)
  if (candidates !== undefined) checkCandidates(candidates, where)
}

function checkRewards(rewards: unknown, where: string): void {
  if (typeof rewards !== 'object' || rewards === null || Array.isArray(rewards))
    throw fault(`${where} returned ${shown(rewards)} as \`rewards\`; return numbers by name`)
  for (const [name, reward] of Object.entries(rewards))
    if (!Number.isFinite(reward))
      throw fault(`${where} returned ${shown(reward)} as the reward '${name}'; return a finite number`)
}

function checkCandidates(candidates: unknown, where: string): void {
  if (!Array.isArray(candidates))
    throw fault(`${where} returned ${shown(candidates)} as \`candidates\`; return an array of actions`)
}

/** A checked choice. `index` is set if there are candidates. */
export interface CheckedChoice {
  readonly action: unknown
  readonly index: number | undefined
  readonly logProb: number | null
  readonly value: number | undefined
}

/** Checks what a policy chose: if there are candidates, it must be one of them. */
export function checkChoice(
  choice: Choice,
  candidates: readonly unknown[] | undefined,
  policy: string,
  step: number,
): CheckedChoice {
  const { action, index, logProb = null, value } = choice
  if (action === undefined) throw invalid(`${policy} chose no action at step ${step}; it returned undefined`)
  if (logProb !== null && !Number.isFinite(logProb))
    throw invalid(`${policy} gave the log-probability ${shown(logProb)} at step ${step}; give a finite number, or null`)
  if (value !== undefined && !Number.isFinite(value))
    throw invalid(`${policy} gave the value ${shown(value)} at step ${step}; give a finite number, or leave it out`)
  if (candidates === undefined) return { action, index: undefined, logProb, value }
  const found = index === undefined ? placeOf(action, candidates) : isAt(index, action, candidates) ? index : -1
  if (found < 0)
    throw invalid(
      `${policy} chose ${shown(action)} at step ${step}${index === undefined ? '' : ` with the index ${shown(index)}`}, which is not one of the ${candidates.length} candidates`,
    )
  return { action, index: found, logProb, value }
}

function placeOf(action: unknown, candidates: readonly unknown[]): number {
  const at = candidates.indexOf(action)
  if (at >= 0 || typeof action !== 'object' || action === null) return at
  return candidates.findIndex((candidate) => isDeepStrictEqual(candidate, action))
}

const isAt = (index: number, action: unknown, candidates: readonly unknown[]) =>
  Number.isInteger(index) &&
  index >= 0 &&
  index < candidates.length &&
  (candidates[index] === action || isDeepStrictEqual(candidates[index], action))

export const fault = (message: string) => new TaskError('ENVIRONMENT_FAULT', message)

const invalid = (message: string) => new TaskError('ACTION_INVALID', message)

function shown(value: unknown): string {
  if (typeof value === 'string') return `'${value.slice(0, 60)}'`
  if (typeof value === 'function') return 'a function'
  try {
    const text = typeof value === 'object' ? JSON.stringify(value) : String(value)
    return text.length <= 60 ? text : `${text.slice(0, 60)}…`
  } catch {
    return typeof value
  }
}

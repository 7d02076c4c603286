import { ManyworldsError } from '../errors.ts'

export function checkLength(what: string, numbers: ArrayLike<number>, length: number): void {
  if (numbers.length !== length) refuse(`${what}: the length must be ${length}; it is ${numbers.length}`)
}

/** Throws on NaN or a missing number, because either would silently spread to every weight. */
export function checkNumbers(what: string, numbers: ArrayLike<number>, length = numbers.length): void {
  checkLength(what, numbers, length)
  for (let i = 0; i < length; i++)
    if (!Number.isFinite(numbers[i])) refuse(`${what}: number ${i} is ${numbers[i]}; it must be finite`)
}

/** Like `checkNumbers`; a failed rollout has a reward of null, not 0. */
export function checkRewards(what: string, rewards: ArrayLike<number>): void {
  for (let i = 0; i < rewards.length; i++)
    if (!Number.isFinite(rewards[i]))
      refuse(
        `${what}: number ${i} is ${rewards[i]}; it must be finite. Drop rollouts without a reward, or give them one, first`,
      )
}

export function checkFinite(what: string, value: number): void {
  if (!Number.isFinite(value)) refuse(`\`${what}\` must be a finite number; it is ${value}`)
}

export function checkBetween(what: string, value: number, min: number, max: number): void {
  // NaN and non-numbers fail as well, because no comparison holds for them.
  if (value >= min && value <= max) return
  const range = max === Number.POSITIVE_INFINITY ? `of at least ${min}` : `from ${min} to ${max}`
  refuse(`\`${what}\` must be a number ${range}; it is ${value}`)
}

function refuse(message: string): never {
  throw new ManyworldsError('CONFIG_INVALID', message)
}

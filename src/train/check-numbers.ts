import { ManyworldsError } from '../errors.ts'

/** A NaN would spread silently to every weight of a policy, and a missing number is one. */
export function checkNumbers(what: string, numbers: ArrayLike<number>, length = numbers.length): void {
  if (numbers.length !== length)
    throw new ManyworldsError('CONFIG_INVALID', `${what}: there must be ${length} numbers; there are ${numbers.length}`)
  for (let i = 0; i < length; i++)
    if (!Number.isFinite(numbers[i]))
      throw new ManyworldsError('CONFIG_INVALID', `${what}: number ${i} is ${numbers[i]}; it must be finite`)
}

export function checkBetween(what: string, value: number, min: number, max: number): void {
  if (value >= min && value <= max) return
  const range = max === Number.POSITIVE_INFINITY ? `at least ${min}` : `from ${min} to ${max}`
  throw new ManyworldsError('CONFIG_INVALID', `\`${what}\` must be a number ${range}; it is ${value}`)
}

/** A rollout that failed has null for its reward, which is not 0. */
export function checkRewards(what: string, rewards: ArrayLike<number>): void {
  for (let i = 0; i < rewards.length; i++)
    if (!Number.isFinite(rewards[i]))
      throw new ManyworldsError(
        'CONFIG_INVALID',
        `${what}: number ${i} is ${rewards[i]}; it must be finite. Drop rollouts without a reward, or decide on one, before this`,
      )
}

import { LocalRuntime, ManyworldsError } from 'manyworlds'
import { expect } from 'vitest'

/** The local engine, counting how often it was started: a mistake that is found in time starts nothing. */
export class CountingRuntime extends LocalRuntime {
  static starts = 0

  override start(...args: Parameters<LocalRuntime['start']>): Promise<void> {
    CountingRuntime.starts++
    return super.start(...args)
  }
}

/** What a call throws, now or later. It must be one of our errors, with this code and all of these words in its message. */
export async function refused(
  call: () => unknown,
  code: ManyworldsError['code'],
  ...words: readonly string[]
): Promise<ManyworldsError> {
  const before = CountingRuntime.starts
  let error: unknown
  try {
    await call()
  } catch (thrown) {
    error = thrown
  }
  if (!ManyworldsError.is(error)) throw new Error('nothing was refused', { cause: error })
  expect(error.code).toBe(code)
  for (const word of words) expect(error.message).toContain(word)
  expect(error.name).toBe('ManyworldsError')
  expect(CountingRuntime.starts - before, 'engines started in spite of the mistake').toBe(0)
  return error
}

import { ManyworldsError, Runners, TaskError } from 'manyworlds'
import { afterAll, expect, it } from 'vitest'
import { echo } from '../agents/basics.ts'

afterAll(() => Runners.shutdown())

const thrown = new ManyworldsError('CONFIG_INVALID', 'no such key')
const value = new TaskError('TASK_THREW', 'it broke')

it('an error is thrown or the value of a task, never both', () => {
  expect([ManyworldsError.is(thrown), TaskError.is(thrown)]).toEqual([true, false])
  expect([ManyworldsError.is(value), TaskError.is(value)]).toEqual([false, true])
  for (const other of [undefined, null, 'CONFIG_INVALID', { code: 'TASK_THREW' }, new Error('it broke')])
    expect([ManyworldsError.is(other), TaskError.is(other)]).toEqual([false, false])
})

it('errors of another copy of the package are recognized', async () => {
  const copy = (await import(`${new URL('../../dist/errors.js', import.meta.url).href}?copy`)) as {
    ManyworldsError: typeof ManyworldsError
    TaskError: typeof TaskError
  }
  expect(copy.TaskError).not.toBe(TaskError)
  expect([copy.ManyworldsError.is(thrown), copy.TaskError.is(thrown)]).toEqual([true, false])
  expect([copy.ManyworldsError.is(value), copy.TaskError.is(value)]).toEqual([false, true])
})

it('a run that fails halfway has what was finished on its error', async () => {
  async function* tasks() {
    yield echo.task(42, { id: 'first' })
    throw new Error('the disk is gone')
  }
  const error = await Runners.runTask(tasks(), { workerNum: 1, store: false }).catch((error: unknown) => error)
  if (!ManyworldsError.is(error)) throw error
  expect(error.code).toBe('SOURCE_FAILED')
  expect(error.responses?.get('first')?.answer).toBe(42)
  // A property that most errors do not have: neither when they are printed, nor in JSON.
  expect('responses' in thrown).toBe(false)
})

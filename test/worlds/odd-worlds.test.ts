import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { isDeepStrictEqual } from 'node:util'
import fc from 'fast-check'
import { pythonWorld } from 'manyworlds/agents'
import { beforeAll, describe, expect, test, vi } from 'vitest'
import { toPython } from '../../dist/agents/worlds/python-json.js'
import { WorldServer } from '../../dist/agents/worlds/world-server.js'
import { begin } from './episode.ts'
import { SET_UP_MS, whyNoWorlds } from './needs-python.ts'

/** Worlds that do what worlds should not do, and what it comes to for them and for others in the same Python process. */

/** The actions of python/odd_worlds.py. */
const SEEDED = 0
const KILL = 1
const HANG = 2
const LEAVE = 3
const RAISE = 4
const PRINT = 5
const VALUES = 6
const DIE = 7
const UNSEEDED = 8
const END = 9
const CUT = 10
const BOTH = 11
const BIG = 12
const SOLVED = 13

/** Longer than any step that does not hang, also on a slow machine. */
const STEP_MS = 8000

const odd = pythonWorld<unknown, number>({
  kind: 'gymnasium',
  id: 'odd_worlds:Odd-v0',
  name: 'odd',
  kwargs: { note: Number.NaN },
})
const hasty = pythonWorld<unknown, number>({
  kind: 'gymnasium',
  id: 'odd_worlds:Odd-v0',
  name: 'odd',
  stepTimeoutMs: STEP_MS,
})

const skip = (await whyNoWorlds('gymnasium')) !== undefined
/** Python is started several times in a test, and reads Gymnasium for some seconds each time on a slow machine. */
vi.setConfig({ testTimeout: 240_000 })

beforeAll(() => {
  process.env.PYTHONPATH = fileURLToPath(new URL('python', import.meta.url))
}, SET_UP_MS)

/** Dictionaries of fast-check may have no prototype. */
const copy = (value: unknown): unknown => structuredClone(value)

const pidOf = async () => {
  const { first, close } = await begin(odd, { seed: 0, options: { why: 'pid' } })
  close()
  return (first.observation as { pid: number }).pid
}

const isThere = (pid: number) => {
  try {
    return !readFileSync(`/proc/${pid}/stat`, 'utf8').includes(') Z ')
  } catch {
    return false
  }
}

describe.skipIf(skip)('what a world says', () => {
  test('values arrive as they are, also those that JSON does not have', async () => {
    const episode = await begin(odd, { seed: 1 })
    const { observation } = await episode.step(VALUES)
    expect(observation).toEqual({
      floats: [Number.NaN, Infinity, -Infinity, -0, 0.1 + 0.2, 5e-324, Number.MAX_VALUE],
      ints: [Number.MAX_SAFE_INTEGER, 2n ** 53n + 1n, -(2n ** 64n)],
      numpy: [
        Math.fround(0.1),
        3,
        true,
        [
          [1, 2],
          [3, 4],
        ],
      ],
      text: 'a\u2028b \ud800 \u2603 12345678901234567890',
      bytes: new Uint8Array([0, 255]),
      $float: "a key of the world's own",
      7: [null, true],
    })
    episode.close()
  })

  test('values reach it as they are', async () => {
    const options = { values: [Number.NaN, Infinity, -Infinity, -0, 0.1 + 0.2, 5e-324, 2n ** 70n, '\u2603 \ud800'] }
    const { first, close } = await begin(odd, { seed: 1, options })
    expect(first.observation).toMatchObject({ options, note: Number.NaN })
    close()
    const boxed = pythonWorld({ kind: 'gymnasium', id: 'odd_worlds:Boxed-v0' })
    const episode = await begin(boxed, undefined)
    const { observation } = await episode.step({ box: new Float64Array([0.1, -0]), pair: [2, 1] })
    expect(observation).toEqual({ box: [0.1, -0], kinds: ['ndarrayfloat64', 'ndarrayint64'], pair: [2, 1] })
    for (const wrong of [{ box: [1], pair: [0, 0] }, { box: [0, 0], pair: [3, 0] }, { box: [0, 0] }, 'left', () => 1])
      await expect(episode.step(wrong)).rejects.toMatchObject({ code: 'ACTION_INVALID' })
    expect(episode.first.candidates).toBeUndefined()
    episode.close()
  })

  test('whatever is sent comes back as the same', async () => {
    const { data } = fc.letrec((tie) => ({
      data: fc.oneof(
        { maxDepth: 4 },
        fc.double(),
        fc.integer(),
        fc.bigInt().filter((big) => big > BigInt(Number.MAX_SAFE_INTEGER) || big < BigInt(Number.MIN_SAFE_INTEGER)),
        fc.constantFrom(null, true, false, 2 ** 53, -(2 ** 60), 1e21, 123456789012345680, 5e-324, '$int', '~1', '!'),
        fc.string({ unit: 'binary' }),
        fc.string().map((text) => `${text}\ud800\n 12345678901234567890`),
        fc.array(tie('data'), { maxLength: 5 }),
        fc.dictionary(fc.oneof(fc.string(), fc.constantFrom('$float', '$dict', '__proto__', '7')), tie('data'), {
          maxKeys: 5,
        }),
      ),
    }))
    const values = fc.sample(fc.array(data, { maxLength: 50 }), 100)
    for (const value of values) {
      const { first, close } = await begin(odd, { seed: 1, options: { value } })
      close()
      const back = (first.observation as { options: { value: unknown } }).options.value
      expect(isDeepStrictEqual(copy(back), copy(value)), toPython(value)).toBe(true)
    }
  })

  test('what it prints, and programs that it starts print, does not disturb; there is nothing to read for it', async () => {
    const episode = await begin(odd, { seed: 1 })
    expect((await episode.step(PRINT)).observation).toEqual({ read: '' })
    expect((await episode.step(SEEDED)).reward).toBe(0.5)
    episode.close()
  })

  test('the end of an episode and being cut short are told apart', async () => {
    const episode = await begin(odd, { seed: 1 })
    expect(await episode.step(SEEDED)).toMatchObject({ done: false, truncated: false })
    expect(await episode.step(END)).toMatchObject({ done: true, truncated: false })
    expect(await episode.step(CUT)).toMatchObject({ done: true, truncated: true })
    expect(await episode.step(BOTH)).toMatchObject({ done: true, truncated: false })
    expect(await episode.step(SOLVED)).toMatchObject({ done: true, success: true })
    episode.close()
  })

  test('what it raises fails its episode, and nothing else', async () => {
    const [bad, other] = await Promise.all([begin(odd, { seed: 1 }), begin(odd, { seed: 2 })])
    const before = await pidOf()
    await expect(bad.step(RAISE)).rejects.toMatchObject({
      code: 'WORLD_FAILED',
      message: "step 0 of 'odd' raised ValueError: a world that raises \u2603",
      stack: expect.stringMatching(/^TaskError: step 0 .*\nTraceback[\s\S]*odd_worlds\.py", line \d+, in step\n/),
    })
    await expect(bad.step(LEAVE)).rejects.toMatchObject({
      message: expect.stringContaining('raised SystemExit: a world'),
    })
    await expect(bad.step(14)).rejects.toMatchObject({
      code: 'ACTION_INVALID',
      message: "step 0 of 'odd': 14 is not an action of Discrete(14)",
    })
    await expect(bad.step(0.5)).rejects.toMatchObject({ code: 'ACTION_INVALID' })
    expect(await other.step(SEEDED)).toMatchObject({ done: false })
    expect(await pidOf()).toBe(before)
    bad.close()
    other.close()
  })
})

describe.skipIf(skip)('when the Python process dies', () => {
  /** The same episode, undisturbed. */
  async function observations(seed: number, actions: readonly number[]) {
    const episode = await begin(odd, { seed })
    const seen: unknown[] = [episode.first.observation]
    for (const action of actions) seen.push((await episode.step(action)).observation)
    episode.close()
    return seen
  }

  test.each([
    [KILL, 'WORLD_CRASHED', /^the Python process was killed by SIGKILL during step 2 of 'odd'; /],
    [
      DIE,
      'WORLD_CRASHED',
      /^the Python process exited with code 7 during step 2 of 'odd'; the end of its stderr:\nlast words$/,
    ],
    [HANG, 'WORLD_TIMEOUT', /^the Python process was killed because a request took longer than 8000 ms during step 2/],
    [BIG, 'WORLD_CRASHED', /^the Python process was killed because an answer exceeded 64 MB during step 2/],
  ])(
    'the episode that was executing is charged (action %i); others go on as if nothing had happened',
    async (action, code, message) => {
      const steps = [SEEDED, SEEDED, SEEDED, SEEDED]
      const expected = await Promise.all([10, 11, 12].map((seed) => observations(seed, steps)))
      const before = await pidOf()
      const bad = await begin(action === HANG ? hasty : odd, { seed: 1 })
      const others = await Promise.all([10, 11, 12].map((seed) => begin(odd, { seed })))
      const seen = others.map((other): unknown[] => [other.first.observation])
      const stepAll = () =>
        Promise.all(others.map(async (other, at) => void seen[at]!.push((await other.step(SEEDED)).observation)))
      await Promise.all([bad.step(SEEDED), stepAll()])
      await Promise.all([bad.step(SEEDED), stepAll()])
      // Before it, behind it, and while it dies: those before have been executed, and their answers are lost.
      const early = stepAll()
      await expect(bad.step(action)).rejects.toMatchObject({ code, message: expect.stringMatching(message) })
      await early
      await stepAll()
      expect(seen).toEqual(expected)
      expect(others[0]!.log.join()).toContain(
        "while no step of 'odd' was executing; replaying the episode from its seed in a new process",
      )
      expect(isThere(before)).toBe(false)
      for (const episode of [bad, ...others]) episode.close()
    },
  )

  test('between two requests, nobody is charged', async () => {
    const expected = await observations(5, [SEEDED, SEEDED])
    const episode = await begin(odd, { seed: 5 })
    const seen = [episode.first.observation, (await episode.step(SEEDED)).observation]
    process.kill(await pidOf(), 'SIGKILL')
    expect((await episode.step(SEEDED)).observation).toEqual(expected.at(-1))
    expect(seen).toEqual(expected.slice(0, 2))
    episode.close()
  })

  test('a world that does not do the same again fails with words that say so', async () => {
    const episode = await begin(odd, { seed: 5 })
    await episode.step(UNSEEDED)
    process.kill(await pidOf(), 'SIGKILL')
    await expect(episode.step(SEEDED)).rejects.toMatchObject({
      code: 'WORLD_NOT_DETERMINISTIC',
      message: expect.stringContaining('the same seed and the same 1 actions gave other results'),
    })
    episode.close()
  })

  test('a process that is stopped is replaced, and nobody is charged', async () => {
    const episode = await begin(hasty, { seed: 5 })
    process.kill(await pidOf(), 'SIGSTOP')
    expect(await episode.step(SEEDED)).toMatchObject({ reward: 0.5 })
    episode.close()
  })
})

describe.skipIf(skip || process.platform !== 'linux')('nothing is left', () => {
  test.each(['exit', 'kill', 'hang'])('of Python when its caller ends (%s)', (how) => {
    const script = `
      const { pythonWorld } = await import('manyworlds/agents')
      const odd = pythonWorld({ kind: 'gymnasium', id: 'odd_worlds:Odd-v0' })
      const ctx = { log() {}, randomStream: () => () => 0 }
      const { state, observation } = await odd.reset({ id: 'a', input: { options: { a: 1 } } }, ctx)
      process.stdout.write(String(observation.pid))
      if ('${how}' === 'hang') void odd.step(state, ${HANG}, ctx)
      if ('${how}' !== 'exit') setTimeout(() => process.kill(process.pid, 'SIGKILL'), 300)`
    let pid = 0
    try {
      pid = Number(execFileSync(process.execPath, ['--input-type=module', '-e', script], { cwd: import.meta.dirname }))
    } catch (error) {
      pid = Number((error as { stdout: Buffer }).stdout)
    }
    expect(pid).toBeGreaterThan(1)
    return expect.poll(() => isThere(pid), { timeout: 40_000 }).toBe(false)
  })

  test('of Python when nobody has needed it for a while', async () => {
    const server = new WorldServer({ kind: 'gymnasium', packages: [], python: undefined }, 200)
    await server.ready()
    const { pid } = await server.program()
    expect(isThere(pid!)).toBe(true)
    await expect.poll(() => isThere(pid!)).toBe(false)
    await server.ready()
    expect((await server.program()).pid).not.toBe(pid)
  })

  test('a script that has only described a world ends at once', { timeout: 120_000 }, () => {
    const script = `
      const { pythonWorld } = await import('manyworlds/agents')
      const { actionSpace } = await pythonWorld({ kind: 'gymnasium', id: 'odd_worlds:Odd-v0' }).describe()
      process.stdout.write(actionSpace.text)`
    const began = performance.now()
    const said = execFileSync(process.execPath, ['--input-type=module', '-e', script], { cwd: import.meta.dirname })
    expect(said.toString()).toBe('Discrete(14)')
    // Python that nobody needs is kept for a minute.
    expect(performance.now() - began).toBeLessThan(50_000)
  })
})

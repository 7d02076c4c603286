import { mkdtempSync, readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { sinkOf, type TrainingSink, tensorboard } from '../../dist/train/index.js'
import { crc32c } from '../../dist/train/sinks/crc32c.js'
import { openSinks } from '../../dist/train/sinks/open-sinks.js'
import { TENSORBOARD } from '../python/environments.ts'
import { PYTHON_SET_UP_MS, pythonOf, runPython, whyNoPython } from '../python/locked.ts'

let noTensorboard: string | undefined
beforeAll(async () => {
  noTensorboard = await whyNoPython(TENSORBOARD)
}, PYTHON_SET_UP_MS)

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'manyworlds-sinks-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

type Points = readonly (readonly [step: number, value: number | string, seconds: number])[]
type Found = Record<string, Record<string, Record<string, { plugin: string; points: Points }>>>

async function read(...folders: string[]): Promise<Found> {
  const script = new URL('read_events.py', import.meta.url)
  return (await runPython(await pythonOf(TENSORBOARD), script, { input: folders, timeoutMs: 120_000 })) as Found
}

/** A training that tells `steps` steps, and the lines that were reported. */
async function logged(sinks: readonly TrainingSink[], tell: (log: ReturnType<typeof openSinks>) => void, more = {}) {
  const lines: string[] = []
  const log = openSinks(sinks, { trainingId: 't1', config: { lr: 0.05 } }, (line) => void lines.push(line), more)
  tell(log)
  await log.close()
  return lines
}

const AT = 1_790_000_000_123
const sorted = (values: readonly string[]) => values.toSorted()

describe('tensorboard', () => {
  it('shows every figure of a training as it was, whatever its name', { timeout: 180_000 }, async ({ skip }) => {
    if (noTensorboard !== undefined) skip()
    const folder = newFolder()
    const names = [
      'loss',
      'eval/validation success',
      'größe/∑ 🎲',
      '__proto__',
      'a\\b"c\'',
      '%2F..',
      ' ',
      'constructor',
    ]
    const numbers = [0, -0, 1, -1e-3, Math.PI, 1 / 3, 1e-45, 3.4e38, 16_777_217, Number.MIN_VALUE]
    const steps = [0, 1, 7, 2 ** 31, 2 ** 40]
    const valuesAt = (step: number) =>
      Object.fromEntries(names.map((name, at) => [name, numbers[(at + step) % numbers.length]!]))
    const lines = await logged([tensorboard(folder)], (log) => {
      for (const step of steps) log.scalars(step, valuesAt(step), AT + step)
      log.text(7, 'alarms', 'entropy **fell** → 0.01\nsecond line', AT)
    })
    expect(lines).toEqual([])
    const { t1 } = (await read(folder))[folder]!
    expect(sorted(Object.keys(t1!))).toEqual(sorted([...names, 'alarms', 'config']))
    for (const name of names) {
      const { plugin, points } = t1![name]!
      expect(plugin).toBe('scalars')
      expect(points.map(([step]) => step)).toEqual(steps)
      for (const [step, value, seconds] of points) {
        expect(value).toBe(Math.fround(valuesAt(step)[name]!))
        expect(seconds).toBe((AT + step) / 1000)
      }
    }
    expect(t1!.alarms).toMatchObject({
      plugin: 'text',
      points: [[7, 'entropy **fell** → 0.01\nsecond line', AT / 1000]],
    })
    expect(t1!.config!.points[0]![1]).toContain('"lr": 0.05')
  })

  it('a training that goes on tells each step once, also after a crash in the middle of a write', {
    timeout: 180_000,
  }, async ({ skip }) => {
    if (noTensorboard !== undefined) skip()
    const folder = newFolder()
    const tell = (from: number, to: number) => (log: ReturnType<typeof openSinks>) => {
      for (let step = from; step <= to; step++) log.scalars(step, { loss: step, reward: -step }, AT + step)
      // An evaluation comes after the figures of its step.
      log.scalars(to, { 'eval/success': to }, AT + to)
    }
    await logged([tensorboard(folder)], tell(0, 4))
    await logged([tensorboard(folder)], tell(3, 8))
    // The last record is cut off: its figures were never seen, and are told again.
    const files = () => sorted(readdirSync(join(folder, 't1'))).map((name) => join(folder, 't1', name))
    const [, second] = files()
    truncateSync(second!, readFileSync(second!).length - 3)
    await logged([tensorboard(folder)], tell(8, 9))
    expect(files()).toHaveLength(3)
    const { t1 } = (await read(folder))[folder]!
    const stepsOf = (name: string) => t1![name]!.points.map(([step, value]) => [step, value])
    expect(stepsOf('loss')).toEqual(Array.from({ length: 10 }, (_, step) => [step, step]))
    expect(stepsOf('reward')).toEqual(Array.from({ length: 10 }, (_, step) => [step, -step]))
    expect(stepsOf('eval/success')).toEqual([4, 9].map((step) => [step, step]))
    expect(t1!.config!.points).toHaveLength(1)
  })

  it('trainings are side by side, and an id cannot leave the folder', async () => {
    const folder = newFolder()
    for (const trainingId of ['t2', '..', 'a/b']) {
      const log = openSinks([tensorboard(folder)], { trainingId }, () => {})
      log.scalars(0, { loss: 1 }, AT)
      await log.close()
    }
    expect(sorted(readdirSync(folder))).toEqual(['%2E%2E', 'a%2Fb', 't2'])
  })

  it('has the checksum of Castagnoli', () => {
    // From RFC 3720, B.4.
    expect(crc32c(new Uint8Array(32))).toBe(0x8a9136aa)
    expect(crc32c(new Uint8Array(32).fill(0xff))).toBe(0x62a8ab43)
    expect(crc32c(Uint8Array.from({ length: 32 }, (_, at) => at))).toBe(0x46dd794e)
  })

  it('files that are no event files do not stop it', async () => {
    const folder = newFolder()
    await logged([tensorboard(folder)], (log) => log.scalars(0, { loss: 1 }, AT))
    const inside = join(folder, 't1')
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ maxLength: 64 }), async (bytes) => {
        writeFileSync(join(inside, 'events.out.tfevents.0000000001.000000.x'), bytes)
        expect(await logged([tensorboard(folder)], (log) => log.scalars(1, { loss: 1 }, AT))).toEqual([])
      }),
      { numRuns: 20 },
    )
  })
})

describe('a log', () => {
  it('leaves out figures that are not finite, and says so once', async () => {
    const seen: [number, object][] = []
    const lines = await logged([{ scalars: (step, values) => void seen.push([step, { ...values }]) }], (log) => {
      log.scalars(1, { loss: Number.NaN, reward: 1 }, AT)
      log.scalars(2, { loss: Number.NaN, reward: Number.POSITIVE_INFINITY }, AT)
    })
    expect(seen).toEqual([
      [1, { reward: 1 }],
      [2, {}],
    ])
    expect(lines).toEqual([
      '`loss` is NaN at step 1; non-finite values are left out of the log',
      '`reward` is Infinity at step 2; non-finite values are left out of the log',
    ])
  })

  it.each<[string, () => void | Promise<void>, RegExp]>([
    [
      'throws',
      () => {
        throw new Error('no room')
      },
      /\(bad\) failed and is disabled; the training continues: no room$/,
    ],
    ['rejects', () => Promise.reject(new Error('HTTP 503')), /HTTP 503$/],
    ['hangs', () => new Promise(() => {}), /a call took longer than 0.05 s$/],
  ])('one that %s is reported once and left out, and the others go on', async (_, fail, words) => {
    let calls = 0
    let closed = 0
    const failing = () => {
      calls++
      return fail()
    }
    const bad: TrainingSink = { name: 'bad', scalars: failing, close: () => void closed++ }
    const good: number[] = []
    const lines = await logged(
      [bad, { scalars: (step) => void good.push(step) }],
      (log) => {
        for (let step = 0; step < 5; step++) log.scalars(step, { loss: 1 }, AT)
      },
      { callMs: 50 },
    )
    expect(good).toEqual([0, 1, 2, 3, 4])
    expect({ calls, closed }).toEqual({ calls: 1, closed: 1 })
    expect(lines).toEqual([expect.stringMatching(words)])
  })

  it('one that cannot be opened is told nothing, and one that is too slow is left out', async () => {
    const file = join(newFolder(), 'a file')
    writeFileSync(file, '')
    const lines = await logged([tensorboard(file)], (log) => log.scalars(0, { loss: 1 }, AT))
    expect(lines).toEqual([expect.stringMatching(/tensorboard:.*a file\) failed and is disabled.*E(NOTDIR|EXIST)/)])
    const slow = await logged(
      [{ scalars: () => new Promise((resolve) => setTimeout(resolve, 20)) }],
      (log) => {
        for (let step = 0; step < 20; step++) log.scalars(step, { loss: 1 }, AT)
      },
      { maxPending: 4 },
    )
    expect(slow).toEqual([expect.stringMatching(/slower than the training; 4 calls are pending$/)])
  })

  it('is named by a word, a word and a folder, or is your own', () => {
    expect(sinkOf('tensorboard').name).toBe(`tensorboard:${join(process.cwd(), 'tensorboard')}`)
    expect(sinkOf('tensorboard:C:x').name).toBe(`tensorboard:${join(process.cwd(), 'C:x')}`)
    const own: TrainingSink = { scalars: () => {} }
    expect(sinkOf(own)).toBe(own)
    for (const wrong of ['wandb', 'tensorboard:', '', { scalar: 1 }, null])
      expect(() => sinkOf(wrong as never)).toThrow(/`log` must be 'tensorboard', 'tensorboard:FOLDER', or a sink/)
  })
})

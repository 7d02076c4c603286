import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { checkWorkerMessage } from '../../src/protocol/check-messages.ts'
import { CODECS, decode, encode } from '../../src/protocol/codec.ts'
import { ListMemory } from '../../src/trajectory/list-memory.ts'
import { opened, type PackedStep, packedStepSize, packStep, stepsText } from '../../src/trajectory/packed-step.ts'
import type { ModelStep, Step, StepContent } from '../../src/trajectory/step.ts'
import { StepUnpacker, unpackSteps } from '../../src/trajectory/unpack-steps.ts'
import { cpuMs } from '../support/cpu-ms.ts'

/** Steps as a worker packs them. */
function packed(contents: readonly StepContent[]): PackedStep[] {
  const memory = new ListMemory()
  return contents.map((content, index) => packStep({ index, atMs: index / 8, ...content }, () => memory))
}

/** As a driver gets them: over the wire, and checked. */
function sent(steps: PackedStep[], codec: string): PackedStep[] {
  const [message] = decode(encode([{ type: 'done', records: [[1, steps, []]], outcomes: [] }], codec)) as [
    { records: [[number, PackedStep[], []]] },
  ]
  expect(checkWorkerMessage(message)).toBeUndefined()
  return message.records[0][1]
}

const bytes = (steps: PackedStep[]) => steps.reduce((sum, step) => sum + packedStepSize(step), 0)
const placed = (contents: readonly StepContent[]) =>
  contents.map((content, index) => ({ index, atMs: index / 8, ...content }) as Step)

const message = fc.record(
  { role: fc.constantFrom('user', 'assistant'), content: fc.string({ maxLength: 400 }) },
  { noNullPrototype: true },
)

/** Conversations that grow, fork, are cut and are compacted. */
const histories = fc
  .array(fc.record({ keep: fc.nat(20), added: fc.array(message, { maxLength: 4 }) }), { maxLength: 25 })
  .map((turns) => {
    let list: unknown[] = []
    return turns.map(({ keep, added }) => {
      list = [...list.slice(0, keep), ...added]
      return list
    })
  })

const model = (logProbs: number[], tail: number[]): ModelStep => ({
  kind: 'model',
  role: 'agent',
  policy: { name: 'p', version: 7 },
  server: { model: 'small' },
  request: { from: null, keep: 0, added: [{ role: 'user', content: 'hi' }], tools: '', wire: '{}' },
  reply: { role: 'assistant', content: 'ho', wire: '{}' },
  finish: 'stop',
  cached: false,
  tokens: {
    tokenizer: 't',
    from: null,
    tail: Int32Array.from(tail),
    completion: Int32Array.from(logProbs, (_, i) => i),
    logProbs: Float64Array.from(logProbs),
    of: 'processed',
    constrained: false,
  },
  sampling: { temperature: 1, topP: 1, topK: 0, minP: 0, other: null },
  usage: { inputTokens: tail.length, outputTokens: logProbs.length },
  ms: 3,
  retries: 0,
})

describe.each(CODECS)('steps over the codec %s', (codec) => {
  it('come back as they were recorded, whatever is in them', () => {
    fc.assert(
      fc.property(
        fc.array(
          fc.record(
            {
              kind: fc.constant('note' as const),
              action: fc.anything(),
              data: fc.anything({
                withTypedArray: true,
                withSparseArray: true,
                withMap: true,
                withDate: true,
                withBigInt: true,
              }),
              reward: fc.double(),
              text: fc.string(),
            },
            { requiredKeys: ['kind'] },
          ),
          { maxLength: 6 },
        ),
        (contents) => {
          let steps: PackedStep[]
          try {
            steps = packed(contents)
          } catch {
            // fast-check also makes what cannot travel.
            return
          }
          const back = unpackSteps(sent(steps, codec))
          const plain = structuredClone(placed(contents))
          expect(back).toEqual(plain)
          for (const [i, step] of back.entries()) expect(Object.is(step.reward, plain[i]!.reward)).toBe(true)
        },
      ),
      { numRuns: 500 },
    )
  })

  it('share the lists that they repeat', () => {
    fc.assert(
      fc.property(histories, fc.boolean(), (lists, deep) => {
        const contents = lists.map((list, i): StepContent => {
          if (i % 5 === 4) return { kind: 'note', observation: [...list].reverse() }
          return deep ? { kind: 'note', data: { request: { messages: list } } } : { kind: 'note', observation: list }
        })
        expect(unpackSteps(sent(packed(contents), codec))).toEqual(placed(contents))
      }),
      { numRuns: 300 },
    )
  })

  it('keep lists apart whose paths only look alike', () => {
    const list = (length: number) =>
      Array.from({ length }, (_, i) => ({ role: 'user', content: `message ${i} of many` }))
    const contents = [{ 'a\0b': list(20) }, { a: { b: list(22) } }, { 'a\0b': list(24) }].map(
      (data): StepContent => ({ kind: 'note', data }),
    )
    expect(unpackSteps(sent(packed(contents), codec))).toEqual(placed(contents))
  })

  it('keep circles', () => {
    const circle: Record<string, unknown> = { ids: Int32Array.of(1, 2), list: Array.from({ length: 20 }, (_, i) => i) }
    circle.self = { circle }
    const steps: unknown = unpackSteps(sent(packed([{ kind: 'note', data: circle }]), codec))
    const [back] = steps as [{ data: typeof circle }]
    expect(back.data).toEqual(circle)
    expect((back.data.self as typeof circle).circle).toBe(back.data)
  })

  it('keep token ids and log-probabilities exactly', () => {
    const step = model([-0.1, Number.NaN, -0, -Infinity, -1.5], [1, 2, 128_000])
    const [back] = unpackSteps(sent(packed([step]), codec)) as unknown as [ModelStep]
    expect(back).toEqual(placed([step])[0])
    expect(back.tokens!.logProbs).toEqual(step.tokens!.logProbs)
    expect(Object.is(back.tokens!.logProbs![2], -0)).toBe(true)
  })
})

describe('the time that a step takes', () => {
  it('does not grow with the paths through its objects', () => {
    const cells = Array.from({ length: 40 }, (_, id): Record<string, unknown> => ({ id }))
    for (const cell of cells) for (const [j, other] of cells.entries()) cell[`n${j}`] = other
    let layers: Record<string, unknown> = { x: 1 }
    for (let depth = 0; depth < 8; depth++)
      layers = Object.fromEntries(Array.from({ length: 30 }, (_, i) => [`k${i}`, layers]))
    const began = cpuMs()
    const [mesh, tree] = unpackSteps(packed([cells[0], layers].map((data) => ({ kind: 'note', data })))) as unknown as [
      { data: Record<string, Record<string, unknown>> },
      { data: Record<string, unknown> },
    ]
    expect(cpuMs() - began).toBeLessThan(2000)
    expect(mesh.data.n7!.n0).toBe(mesh.data)
    expect(tree.data.k0).toBe(tree.data.k29)
  })
})

describe('the size of what is sent', () => {
  it('has a limit', () => {
    const logProbs = new Float64Array(70_000_000)
    expect(() => packed([{ kind: 'note', data: { logProbs } }])).toThrow('`data.logProbs` has 70000000 numbers')
    const bytes = Object.fromEntries(Array.from({ length: 9 }, (_, i) => [`b${i}`, new Uint8Array(60_000_000)]))
    expect(() => packed([{ kind: 'note', data: bytes }])).toThrow(/it takes 540000\d+ bytes, and at most 536870912/)
  })

  const chat = (turns: number) => {
    const messages: unknown[] = []
    return Array.from({ length: turns }, (_, turn): StepContent => {
      messages.push({ role: 'user', content: `${turn} ${'some words of a message '.repeat(8)}` })
      return { kind: 'note', action: { messages: [...messages] } }
    })
  }

  it('of a conversation grows with its turns, not with their square', () => {
    const [short, long] = [50, 200].map((turns) => bytes(packed(chat(turns)))) as [number, number]
    expect(long / short).toBeLessThan(4.5)
  })

  it('of a conversation with tools, whose other lists are new in each step, grows with its turns too', () => {
    const tools = (turns: number) =>
      chat(turns).map((step, turn): StepContent => {
        const lists = Array.from({ length: 12 }, (_, i) => [`list${i}`, [`${turn} ${'other words '.repeat(12)}`]])
        return { ...step, data: { ...Object.fromEntries(lists), again: ['the same '.repeat(40)] } } as StepContent
      })
    const [short, long] = [50, 200].map((turns) => bytes(packed(tools(turns)))) as [number, number]
    expect(long / short).toBeLessThan(4.5)
    expect(unpackSteps(packed(tools(60)))).toEqual(placed(tools(60)))
  })

  it('is small for numbers', () => {
    const logProbs = Array.from({ length: 1000 }, (_, i) => -1 / (i + 1))
    const json = JSON.stringify({ logProbs, ids: logProbs.map((_, i) => 100_000 + i) })
    expect(bytes(packed([model(logProbs, [])]))).toBeLessThan(json.length / 2)
  })

  it('does not grow by remembering lists that differ each time', () => {
    const memory = new ListMemory()
    for (let i = 0; i < 1000; i++) memory.link(i, ['a'], [`${i} ${'x'.repeat(200)}`])
    expect(memory.link(1000, ['a'], [`0 ${'x'.repeat(200)}`])).toBeUndefined()
    expect(memory.link(1001, ['a'], [`999 ${'x'.repeat(200)}`, 1])).toEqual([['a'], 999, 1])
  })
})

describe('a list that was changed after it was recorded', () => {
  it('is not taken for the earlier one', () => {
    const messages = [{ role: 'user', content: 'x'.repeat(200) }]
    const memory = new ListMemory()
    const record = (index: number) => packStep({ index, atMs: 0, kind: 'note', action: messages }, () => memory)
    const first = record(0)
    messages[0]!.content = 'y'.repeat(200)
    messages.push({ role: 'assistant', content: 'z'.repeat(200) })
    const [before, after] = unpackSteps([first, record(1)])
    expect(before!.action).toEqual([{ role: 'user', content: 'x'.repeat(200) }])
    expect(after!.action).toEqual(messages)
  })
})

describe('a malformed step', () => {
  it('is refused, and reaches no prototype', () => {
    const base: PackedStep = [0, '{"a":[1,2,3]}']
    const bad: PackedStep[] = [
      [0, '[1]x'],
      [0, 'null'],
      [0, '{"a":[]}', 0, null, null, null, [[['a'], 5, 1]]],
      [0, '{"a":[]}', 0, null, null, null, [[['a'], 0, 9]]],
      [0, '{"a":[]}', 0, null, null, null, [[['b'], 0, 1]]],
      [0, '{"a":[]}', 0, null, null, null, [[[], 0, 1]]],
      [0, '{"a":null}', 0, null, null, null, null, [[['__proto__', 'x'], new Uint8Array([0, 0, 1]).buffer]]],
      [0, '{"a":null}', 0, null, null, null, null, [[['a'], new Uint8Array([0, 7]).buffer]]],
    ]
    for (const step of bad) expect(() => unpackSteps([base, step])).toThrow()
    expect('x' in {}).toBe(false)
  })

  it('cannot make the reader build lists without end', () => {
    const long: PackedStep = [0, JSON.stringify({ a: new Array(100_000).fill(0) })]
    const again = (index: number): PackedStep => [0, '{"a":[]}', 0, null, null, null, [[['a'], index, 100_000]]]
    const steps = [long, ...Array.from({ length: 4000 }, (_, i) => again(i))]
    expect(() => unpackSteps(steps)).toThrow(expect.objectContaining({ code: 'TRAJECTORY_TOO_LARGE' }))
    const unpacker = new StepUnpacker()
    const readAll = () => {
      for (const step of steps) unpacker.next(opened(step))
    }
    expect(readAll).toThrow(/more than 200000000 elements/)
  }, 180_000)
})

describe('the steps as one text', () => {
  it('are what they are as values', () => {
    const contents: StepContent[] = [
      { kind: 'note' },
      { kind: 'note', action: 'a', reward: 0.5, usage: { inputTokens: 3 } },
      { kind: 'note', reward: 1e21, data: { deep: ['ä\u2028'] } },
    ]
    expect(JSON.parse(stepsText(packed(contents))!)).toEqual(placed(contents))
  })
})

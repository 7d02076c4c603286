import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { BlobReader } from '../../src/store/blobs.ts'
import { decodeDelta, encodeDelta } from '../../src/store/body-delta.ts'
import { StepDecoder, StepEncoder, type StepRow } from '../../src/store/step-rows.ts'
import { ListMemory } from '../../src/trajectory/list-memory.ts'
import { packStep } from '../../src/trajectory/packed-step.ts'
import type { ActionStep, Step, StepContent } from '../../src/trajectory/step.ts'
import { StepUnpacker } from '../../src/trajectory/unpack-steps.ts'

const EVER = Number.POSITIVE_INFINITY

describe('a text as what differs from another', () => {
  /** Texts that have pieces in common, as steps have. */
  const piece = fc.oneof(fc.constantFrom('{"observation":', '"lookup apples",', '[1,2,3]', 'ü👩', ''), fc.string())
  const text = fc.array(piece, { maxLength: 30 }).map((pieces) => Buffer.from(pieces.join('')))

  it('comes back as it was', () => {
    fc.assert(
      fc.property(text, text, (base, next) => {
        expect(decodeDelta(base, encodeDelta(base, next, EVER)!, EVER)).toEqual(next)
        expect(encodeDelta(next, next, EVER)!.length).toBeLessThanOrEqual(next.length < 8 ? next.length + 1 : 6)
      }),
      { numRuns: 2000 },
    )
  })

  it('is not made where it is not worth it', () => {
    const [base, next] = [Buffer.from('a'.repeat(100)), Buffer.from('b'.repeat(100))]
    expect(encodeDelta(base, next, 85)).toBeUndefined()
    expect(encodeDelta(base, next, EVER)!.length).toBe(101)
  })

  it('is read in bounds, whatever it says', () => {
    fc.assert(
      fc.property(text, fc.uint8Array({ maxLength: 40 }), (base, bytes) => {
        try {
          expect(decodeDelta(base, bytes, 5000).length).toBeLessThanOrEqual(5000)
        } catch (error) {
          expect((error as Error).message).toMatch(/outside its base|truncated|exceeds 5000 bytes/)
        }
      }),
      { numRuns: 2000 },
    )
    // The same piece again and again.
    const bomb = Buffer.concat(Array.from({ length: 1000 }, () => Buffer.from([0, 0, 100])))
    expect(() => decodeDelta(Buffer.alloc(100), bomb, 5000)).toThrow('exceeds 5000 bytes')
  })
})

describe('actions in the store', () => {
  const noBlobs = { put: () => expect.unreachable() } as never

  function stored(contents: readonly StepContent[]): { rows: StepRow[]; bytes: number } {
    const memory = new ListMemory()
    const encoder = new StepEncoder(noBlobs)
    const rows = contents.map((content, index) => {
      const step = { index, atMs: index, ...content } as Step
      const [, kind, at_us, reward, version, usage, links, record, numbers] = encoder.encode(
        index,
        packStep(step, () => memory),
      )
      return { kind, at_us, reward, version, usage, links, record, numbers } as StepRow
    })
    return { rows, bytes: rows.reduce((sum, { record }) => sum + (record as string | Uint8Array).length, 0) }
  }

  function read(rows: readonly StepRow[]): Step[] {
    const decoder = new StepDecoder(new StepUnpacker())
    return rows.map((row) => decoder.next(row, undefined as unknown as BlobReader))
  }

  const action = (at: number): ActionStep => ({
    ...{
      kind: 'action',
      observation: { text: 'first sum apples pears then times figs', at, calls: Array(at).fill('add') },
    },
    ...{ candidates: ['lookup apples', 'lookup pears', 'add', 'sub', 'mul'], action: 'add', choice: 2 },
    ...{ logProb: -Math.log(5 + at), mode: 'sample', policy: { name: 'random', version: 3 }, reward: at / 4 },
  })

  it('take a fraction of their JSON, and come back as they were', () => {
    const contents: StepContent[] = []
    for (let at = 0; at < 8; at++)
      contents.push(
        { kind: 'tool', call: null, name: 'add', arguments: { raw: `${at}` }, result: at, ms: 1 },
        ...(at === 3 ? [{ kind: 'note', text: 'x'.repeat(200) } as const] : []),
        action(at),
      )
    const { rows } = stored(contents)
    expect(read(rows)).toEqual(contents.map((content, index) => ({ index, atMs: index, ...content })))
    const actions = rows.filter(({ kind }) => kind === 2).map(({ record }) => record as string | Uint8Array)
    expect(typeof actions[0]).toBe('string')
    for (const record of actions.slice(1)) expect(record.length).toBeLessThan(80)
    // Everything else stays text that any tool can read.
    for (const { kind, record } of rows) if (kind !== 2) expect(typeof record).toBe('string')
  })

  it('may be the first of a list that begins in the middle: what is lost is an error, not another action', () => {
    const { rows } = stored([action(0), action(1)])
    expect(() => read(rows.slice(1))).toThrow('copies bytes outside its base')
  })
})

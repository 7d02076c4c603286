import { create, type MessageInitShape } from '@bufbuild/protobuf'
import { Code, ConnectError } from '@connectrpc/connect'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import {
  type ExecutePlanResponse,
  ExecutePlanResponseSchema,
} from '../../src/engines/spark/connect/generated/spark_connect_pb.ts'
import { type Calls, type ExecuteOptions, Operation } from '../../src/engines/spark/connect/operation.ts'

/** A server that does what the test says: each stream in turn, and what it was asked. */

type ResponseType = MessageInitShape<typeof ExecutePlanResponseSchema>['responseType']
type Step = ExecutePlanResponse | Error | 'nothing more'

const response = (responseId: string, responseType: ResponseType) =>
  create(ExecutePlanResponseSchema, { responseId, responseType: responseType! })
const batch = (row: number) =>
  response(`r${row}`, {
    case: 'arrowBatch',
    value: { data: Uint8Array.of(row), rowCount: 1n, startOffset: BigInt(row) },
  })
const progress = (id: string) => response(id, { case: 'executionProgress', value: { numInflightTasks: 1n } })
const end = response('end', { case: 'resultComplete', value: {} })

const broken = () => new ConnectError('the plug was pulled', Code.Aborted)
const said = (message: string) => new ConnectError(message, Code.Internal, new Headers({ 'grpc-status': '13' }))
const unknown = () => said('[INVALID_HANDLE.OPERATION_NOT_FOUND] no such operation')
const known = () => said('[INVALID_HANDLE.OPERATION_ALREADY_EXISTS] there it is')

/** Longer than any test takes. */
const PATIENT_MS = 600_000
/** For tests in which it gives up: by a clock that goes on with each stream, so that a slow machine makes as many attempts. */
const GIVE_UP_MS = 300
const STREAM_MS = 60

function impatient() {
  let now = 1e12
  const clock = vi.spyOn(Date, 'now').mockImplementation(() => now)
  onTestFinished(() => clock.mockRestore())
  return { giveUpMs: GIVE_UP_MS, onStream: () => void (now += STREAM_MS) }
}

function play(
  streams: Step[][],
  options: ExecuteOptions = {},
  { giveUpMs, onStream }: { giveUpMs: number; onStream(): void } = { giveUpMs: PATIENT_MS, onStream: () => {} },
) {
  const asked: string[] = []
  const next = async function* (what: string, signal: AbortSignal): AsyncGenerator<ExecutePlanResponse> {
    asked.push(what)
    onStream()
    for (const step of streams.shift() ?? [broken()]) {
      if (step instanceof Error) throw step
      if (step !== 'nothing more') yield step
      else await new Promise((_, reject) => signal.addEventListener('abort', () => reject(broken())))
    }
  }
  const calls: Calls = {
    execute: (_id, signal) => next('execute', signal),
    reattach: (_id, after, signal) => next(`reattach after ${after}`, signal),
    release: async (_id, upTo) => void asked.push(`release ${upTo ?? 'all'}`),
    interrupt: async () => void asked.push('interrupt'),
    mayRetry: () => true,
    keepsAlive: () => true,
  }
  const operation = new Operation(calls, options, giveUpMs)
  return {
    asked,
    streams: () => asked.filter((what) => /^(execute|reattach)/.test(what)),
    batches: operation.batches(),
  }
}

async function rowsOf(batches: AsyncIterable<Uint8Array>): Promise<number[]> {
  const found: number[] = []
  for await (const data of batches) found.push(data[0]!)
  return found
}

describe('every batch once, in order', () => {
  test('one stream', async () => {
    const { batches, asked } = play([[batch(0), batch(1), end]])
    expect(await rowsOf(batches)).toEqual([0, 1])
    expect(asked[0]).toBe('execute')
    expect(asked.at(-1)).toBe('release all')
    expect(asked).not.toContain('interrupt')
  })

  test('a stream that breaks goes on after the last response', async () => {
    const { batches, streams } = play([[batch(0), broken()], [broken()], [batch(1), batch(2), broken()], [end]])
    expect(await rowsOf(batches)).toEqual([0, 1, 2])
    expect(streams()).toEqual(['execute', 'reattach after r0', 'reattach after r0', 'reattach after r2'])
  })

  test('a stream that the server ends before the result does goes on', async () => {
    const { batches, streams } = play([[batch(0)], [batch(1)], [end]])
    expect(await rowsOf(batches)).toEqual([0, 1])
    expect(streams()).toEqual(['execute', 'reattach after r0', 'reattach after r1'])
  })

  test('progress counts as a response: the server has forgotten what was before it', async () => {
    const { batches, streams } = play([[batch(0), progress('p1'), broken()], [end]])
    expect(await rowsOf(batches)).toEqual([0])
    expect(streams()).toEqual(['execute', 'reattach after p1'])
  })

  test('a stream that breaks after the end of the result is none of our business', async () => {
    const { batches, streams } = play([[batch(0), end, broken()]])
    expect(await rowsOf(batches)).toEqual([0])
    expect(streams()).toEqual(['execute'])
  })

  test('a gap is an error', async () => {
    await expect(rowsOf(play([[batch(0), batch(2), end]]).batches)).rejects.toThrow('rows from 2 on instead of 1')
  })
})

describe('a request that was lost', () => {
  test('is sent again if the server has never seen it', async () => {
    const { batches, streams } = play([[broken()], [unknown()], [batch(0), end]])
    expect(await rowsOf(batches)).toEqual([0])
    expect(streams()).toEqual(['execute', 'reattach after undefined', 'execute'])
  })

  test('is not if it turns out that it has', async () => {
    const { batches, streams } = play([[broken()], [unknown()], [known()], [batch(0), end]])
    expect(await rowsOf(batches)).toEqual([0])
    expect(streams().slice(2)).toEqual(['execute', 'reattach after undefined'])
  })

  test('nor if there have been answers: that would be another operation', async () => {
    const { batches, streams } = play([[batch(0), broken()], [unknown()], [batch(0), end]])
    await expect(rowsOf(batches)).rejects.toThrow('OPERATION_NOT_FOUND')
    expect(streams()).toHaveLength(2)
  })
})

describe('the end', () => {
  test('what Spark says is not asked again', async () => {
    const { batches, streams } = play([[batch(0), said('[DIVIDE_BY_ZERO]')]])
    await expect(rowsOf(batches)).rejects.toThrow('DIVIDE_BY_ZERO')
    expect(streams()).toHaveLength(1)
  })

  test('a server that does not come back is given up', async () => {
    const { batches, streams } = play([[batch(0)]], {}, impatient())
    await expect(rowsOf(batches)).rejects.toThrow('the plug was pulled')
    expect(streams().length).toBeGreaterThan(3)
  })

  test('so is one that has nothing to say, again and again', async () => {
    const streamsOfNothing = Array.from({ length: 1000 }, () => [])
    const { batches, streams } = play(streamsOfNothing, {}, impatient())
    await expect(rowsOf(batches)).rejects.toThrow('before its end')
    expect(streams().length).toBeGreaterThan(3)
  })

  test('who stops early stops the operation', async () => {
    const { batches, asked } = play([[batch(0), batch(1), end]])
    for await (const _ of batches) break
    expect(asked.slice(-2)).toEqual(['interrupt', 'release all'])
  })

  test('a signal stops it, and its reason is the error', async () => {
    const stop = new AbortController()
    const { batches, asked } = play([['nothing more']], { signal: stop.signal })
    const waiting = rowsOf(batches)
    setTimeout(() => stop.abort(new Error('enough')))
    await expect(waiting).rejects.toThrow('enough')
    expect(asked).toEqual(['execute', 'interrupt', 'release all'])
  })

  test('a signal stops it at once, even if nobody asks for more', async () => {
    const stop = new AbortController()
    const { batches, asked } = play([[batch(0), end]], { signal: stop.signal })
    await batches.next()
    stop.abort()
    await expect.poll(() => asked.slice(-2)).toEqual(['interrupt', 'release all'])
  })

  test('a signal that came before it: nothing is asked at all', async () => {
    const { batches, asked } = play([[end]], { signal: AbortSignal.abort(new Error('too late')) })
    await expect(rowsOf(batches)).rejects.toThrow('too late')
    expect(asked).toEqual([])
  })
})

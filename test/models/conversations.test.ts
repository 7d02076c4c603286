import { expect, test } from 'vitest'
import { Conversations } from '../../src/models/worker/conversations.ts'
import type { Message, StepTokens } from '../../src/trajectory/step.ts'
import { collectGarbage } from '../support/live-memory.ts'

const MB = 1024 * 1024

test('a task with long conversations does not keep a copy of them for each call', () => {
  const conversations = new Conversations()
  let messages: Message[] = [{ role: 'user', content: 'x'.repeat(4 * MB) }]
  collectGarbage()
  const before = process.memoryUsage().heapUsed
  for (let step = 0; step < 16; step++) {
    const reply: Message = { role: 'assistant', content: `reply ${step}` }
    const placed = conversations.place(messages)
    expect(placed).toMatchObject({ from: step === 0 ? null : step - 1, keep: step === 0 ? 0 : messages.length - 1 })
    conversations.remember(step, messages, reply, null)
    messages = [...messages, reply, { role: 'user', content: `and ${step}` }]
  }
  collectGarbage()
  expect((process.memoryUsage().heapUsed - before) / MB).toBeLessThan(8)
  // Long messages that differ are told apart.
  expect(conversations.place([{ role: 'user', content: `${'x'.repeat(4 * MB - 1)}y` }])).toMatchObject({ keep: 0 })
})

const tokens = (tail: readonly number[], completion: readonly number[]): StepTokens => ({
  ...{ tokenizer: 't', from: null, tail: Int32Array.from(tail), completion: Int32Array.from(completion) },
  ...{ logProbs: null, of: 'raw', constrained: false },
})

/** What a conversation of turns comes to: each has the ids of its whole prompt, and of its reply. */
function played(turns: readonly (readonly [number[], number[]])[]) {
  const conversations = new Conversations()
  const opened: (readonly [number | undefined, number])[] = []
  let messages: Message[] = [{ role: 'user', content: 'begin' }]
  const branches = turns.map(([prompt, completion], step) => {
    const carried = conversations.carried(messages)
    const read = tokens(prompt, completion)
    const placed = conversations.placeTokens(read)
    const branch = conversations.branchOf(messages, placed, (from, after) => opened.push([from, after]))
    const reply: Message = { role: 'assistant', content: `reply ${step}` }
    conversations.remember(step, messages, reply, read, branch)
    messages = [...messages, reply, { role: 'user', content: `and ${step}` }]
    return { branch, from: placed.from, carried: carried && [...carried.ids] }
  })
  return { branches, opened }
}

test('turns whose tokens go on from those before stay in the branch of the agent', () => {
  const { branches, opened } = played([
    [[1, 2], [3]],
    [
      [1, 2, 3, 4],
      [5, 6],
    ],
    [[1, 2, 3, 4, 5, 6, 7], [8]],
  ])
  expect(opened).toEqual([])
  expect(branches.map(({ branch, from }) => [branch, from])).toEqual([
    [undefined, null],
    [undefined, 0],
    [undefined, 1],
  ])
  expect(branches[2]!.carried).toEqual([1, 2, 3, 4, 5, 6])
})

test('a reply that comes back as other tokens begins a branch, in which the conversation goes on', () => {
  const { branches, opened } = played([
    [[1, 2], [3]],
    [[1, 2, 30, 31, 4], [5]],
    [[1, 2, 30, 31, 4, 5, 6], [7]],
    [[1, 2, 30, 31, 4, 50, 6, 7, 8], [9]],
  ])
  expect(opened).toEqual([
    [undefined, 0],
    [1, 2],
  ])
  expect(branches.map(({ branch, from }) => [branch, from])).toEqual([
    [undefined, null],
    [1, null],
    [1, 1],
    [2, null],
  ])
})

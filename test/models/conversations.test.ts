import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect, test } from 'vitest'
import { Conversations } from '../../src/models/worker/conversations.ts'
import type { Message } from '../../src/trajectory/step.ts'

const MB = 1024 * 1024

test('a task with long conversations does not keep a copy of them for each call', () => {
  setFlagsFromString('--expose-gc')
  const gc = runInNewContext('gc') as () => void
  const conversations = new Conversations()
  const messages: Message[] = [{ role: 'user', content: 'x'.repeat(4 * MB) }]
  gc()
  const before = process.memoryUsage().heapUsed
  for (let step = 0; step < 16; step++) {
    const reply: Message = { role: 'assistant', content: `reply ${step}` }
    const placed = conversations.place(messages)
    expect(placed).toMatchObject({ from: step === 0 ? null : step - 1, keep: step === 0 ? 0 : messages.length - 1 })
    conversations.remember(step, messages, reply, null)
    messages.push(reply, { role: 'user', content: `and ${step}` })
  }
  gc()
  expect((process.memoryUsage().heapUsed - before) / MB).toBeLessThan(8)
  // Long messages that differ are told apart.
  expect(conversations.place([{ role: 'user', content: `${'x'.repeat(4 * MB - 1)}y` }])).toMatchObject({ keep: 0 })
})

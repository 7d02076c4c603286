import { expect, test } from 'vitest'
import { callsIn } from '../../dist/train/lora/serve/tool-calls.js'
import { cpuMs } from '../support/cpu-ms.ts'

const call = (name: string, args: object) => `<tool_call>\n${JSON.stringify({ name, arguments: args })}\n</tool_call>`

test('calls and the text around them', () => {
  const { text, calls } = callsIn(`Let me see.\n${call('look', { at: 'x' })}\n${call('count', {})}`)
  expect(text).toBe('Let me see.')
  expect(calls).toEqual([
    { name: 'look', arguments: '{"at":"x"}' },
    { name: 'count', arguments: '{}' },
  ])
})

test('a reply without calls stays as it is', () => {
  for (const reply of ['', ' Just text. ', 'a </tool_call> b', '{"name": "look"}'])
    expect(callsIn(reply)).toEqual({ text: reply, calls: [] })
})

test.each([
  '<tool_call>{"name": "look", "arguments": {"at": </tool_call>',
  '<tool_call>{"name": 5, "arguments": {}}</tool_call>',
  '<tool_call>{"name": "", "arguments": {}}</tool_call>',
  '<tool_call>{"name": "look", "arguments": [1]}</tool_call>',
  '<tool_call>null</tool_call>',
  '<tool_call></tool_call>',
  '<tool_call>',
])('what is not a call stays text: %s', (reply) => {
  expect(callsIn(reply)).toEqual({ text: reply, calls: [] })
})

test('a valid call beside a broken one', () => {
  const { text, calls } = callsIn(`<tool_call>{broken</tool_call> then ${call('look', { at: 1 })}`)
  expect(text).toBe('<tool_call>{broken</tool_call> then')
  expect(calls.map(({ name }) => name)).toEqual(['look'])
})

test('the last call may lack its end; a call may be opened twice; arguments may be a text of JSON', () => {
  expect(callsIn('<tool_call>{"name": "look"}').calls).toEqual([{ name: 'look', arguments: '{}' }])
  expect(callsIn(`<tool_call>${call('look', {})}`)).toEqual({ text: '', calls: [{ name: 'look', arguments: '{}' }] })
  const asText = '<tool_call>{"name": "look", "arguments": "{\\"at\\": 1}"}</tool_call>'
  expect(callsIn(asText).calls).toEqual([{ name: 'look', arguments: '{"at":1}' }])
})

test('takes linear time, and not more than 64 calls', () => {
  const began = cpuMs()
  for (const piece of ['<tool_call>', '<tool_call>{', '</tool_call>', '<tool_call>{}</tool_call>', call('a', {})])
    callsIn(piece.repeat(40_000))
  callsIn(`<tool_call>${'['.repeat(1_000_000)}</tool_call>`)
  callsIn(`<tool_call>{"name": "a", "arguments": ${'{"a":'.repeat(100_000)}1${'}'.repeat(100_000)}}</tool_call>`)
  expect(cpuMs() - began).toBeLessThan(5000)
  expect(callsIn(call('a', {}).repeat(100)).calls).toHaveLength(64)
})

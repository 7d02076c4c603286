import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { withNewId } from '../../src/models/driver/completion-id.ts'
import { cpuMs } from '../support/cpu-ms.ts'

describe('the id of a cached completion', () => {
  it('is a new one each time, of the same kind, and nothing else changes', () => {
    const body = `{ "id" : "chatcmpl-abc",\n "created":1.50e3,"choices":[{"id":"choice","message":{"id":"m","tool_calls":[{"id":"call_1","function":{"arguments":"{\\"id\\":\\"x\\"}"}}]}}],"x":{"id":"chatcmpl-abc"} }`
    const [first, second] = [withNewId(body), withNewId(body)]
    const [a, b] = [first, second].map((text) => (JSON.parse(text) as { id: string }).id)
    expect(a).toMatch(/^chatcmpl-[0-9a-f]{32}$/)
    expect(a).not.toBe(b)
    expect(first).toBe(body.replace('chatcmpl-abc', a!))
  })

  it.each([
    ['no id', '{"object":"chat.completion","choices":[{"id":"call_1"}]}'],
    ['an id that is no text', '{"id":17,"choices":[]}'],
    ['an id of null', '{"id":null}'],
    ['an id that is an object', '{"id":{"id":"inner"}}'],
    ['a value that reads id', '{"object":"id","x":"y"}'],
    ['a list', '[{"id":"a"}]'],
    ['not JSON', '<html>{"id":"a"}</html>'],
    ['half of a body', '{"id":"chatcmpl-abc","choices":['],
    ['two bodies', '{"id":"a"}{"id":"b"}'],
    ['a single text', '"id"'],
    ['nothing', ''],
  ])('%s: stays as it is', (_what, body) => {
    expect(withNewId(body)).toBe(body)
  })

  it.each([
    ['last', '{"choices":[{"a":[1,{"b":"]}"}]}],"id":"chatcmpl-1"}'],
    ['after a text with quotes, brackets and backslashes', '{"a":"\\"{[\\\\","b":"\\\\\\"","id":"chatcmpl-1"}'],
    ['with a name that is written in escapes', '{"\\u0069\\u0064":"chatcmpl-1"}'],
    ['in a body with spaces around it', ' \n{"id":\t"chatcmpl-1"}\n'],
  ])('is found %s', (_what, body) => {
    const changed = withNewId(body)
    const { id } = JSON.parse(changed) as { id: string }
    expect(id).toMatch(/^chatcmpl-[0-9a-f]{32}$/)
    expect(changed).toBe(body.replace('chatcmpl-1', id))
  })

  it('is replaced twice if the body has it twice', () => {
    const changed = withNewId('{"id":"chatcmpl-1","id":"chatcmpl-1"}')
    expect(changed).not.toContain('"chatcmpl-1"')
    expect(new Set(changed.match(/chatcmpl-[0-9a-f]{32}/g)).size).toBe(1)
  })

  it.each(['\n', '\r\n'])('is the same new one in all chunks of a stream (lines end with %j)', (end) => {
    const lines = [
      ': keep-alive',
      '',
      'event: message',
      'data: {"id":"chatcmpl-1","choices":[{"delta":{"content":"data: {\\"id\\":\\"chatcmpl-1\\"}"}}]}',
      '',
      'data:{"id":"chatcmpl-1","choices":[{"delta":{"tool_calls":[{"id":"call_1"}]}}]}',
      '',
      'data: [DONE]',
      '',
    ]
    const body = lines.join(end)
    const changed = withNewId(body)
    const ids = changed.match(/chatcmpl-[0-9a-f]{32}/g)!
    expect(ids).toHaveLength(2)
    expect(new Set(ids).size).toBe(1)
    expect(changed.replaceAll(ids[0]!, 'chatcmpl-1')).toBe(body)
    expect(changed).toContain('"call_1"')
  })

  it('any JSON keeps all but the id, to the character', () => {
    fc.assert(
      fc.property(
        fc.dictionary(fc.oneof(fc.constant('id'), fc.string()), fc.jsonValue()),
        fc.nat(4),
        (object, indent) => {
          const body = JSON.stringify({ ...object, id: 'chatcmpl-old' }, undefined, indent)
          const changed = withNewId(body)
          const { id } = JSON.parse(changed) as { id: string }
          expect(id).not.toBe('chatcmpl-old')
          expect(changed.replace(JSON.stringify(id), '"chatcmpl-old"')).toBe(body)
        },
      ),
      { numRuns: 500 },
    )
  })

  it('takes linear time, also for what is made to be slow', () => {
    const hard: ((n: number) => string)[] = [
      (n) => `{"id":"chatcmpl-1","a":"${'\\\\'.repeat(n / 2)}"}`,
      (n) => `{"a":${'['.repeat(n / 2)}${']'.repeat(n / 2)},"id":"chatcmpl-1"}`,
      (n) => `{"id":"chatcmpl-1","a":"${'\\"'.repeat(n / 2)}"}`,
      (n) => `{${'"id":"chatcmpl-1",'.repeat(n / 18)}"a":1}`,
      (n) => '{"id":"chatcmpl-1"'.repeat(n / 18),
      (n) => 'data: {"id":"chatcmpl-1"}\n\n'.repeat(n / 27),
      (n) => 'data:'.repeat(n / 5),
    ]
    const timed = (body: string) => {
      const began = cpuMs()
      withNewId(body)
      return cpuMs() - began
    }
    for (const make of hard) {
      timed(make(100_000))
      // A million characters; quadratic time would be minutes.
      expect(timed(make(1_000_000)), make(40)).toBeLessThan(5000)
    }
  })
})

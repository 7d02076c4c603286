import fc from 'fast-check'
import { formatAction, parseAction } from 'manyworlds/agents'
import { describe, expect, it } from 'vitest'

const call = (tool: string, args: object, raw = expect.any(String)) => ({ kind: 'call', tool, arguments: args, raw })
const reasonOf = (text: string) => {
  const parsed = parseAction(text)
  return parsed.kind === 'unreadable' ? parsed.reason : `a call of ${parsed.tool}`
}

describe('use_tool[…] with …[…]', () => {
  it.each([
    ['use_tool[search] with query[cats]', 'search', { query: 'cats' }],
    ['use_tool[search] with query[cats] limit[5]', 'search', { query: 'cats', limit: '5' }],
    ['use_tool[search] with query[cats], limit[5] and page[2]', 'search', { query: 'cats', limit: '5', page: '2' }],
    ['use_tool[search] with query[cats [2024] [a[b]]]', 'search', { query: 'cats [2024] [a[b]]' }],
    [String.raw`use_tool[search] with query[a \] b \[ c \\ d \n]`, 'search', { query: String.raw`a ] b [ c \ d \n` }],
    ['use_tool[write] with text[two\nlines]', 'write', { text: 'two\nlines' }],
    ['use_tool[write] with text[]', 'write', { text: '' }],
    ['use_tool[ now ]', 'now', {}],
    ['use_tool[now] please', 'now', {}],
    ['I should look.\nuse_tool[search] with query[cats]\nObservation[made up]', 'search', { query: 'cats' }],
    ['use_tool[first] with a[1]; use_tool[second] with b[2]', 'first', { a: '1' }],
    ['use_tool[set] with __proto__[x] größe[1] a.b-c[2]', 'set', { ['__proto__']: 'x', größe: '1', 'a.b-c': '2' }],
    ['{it} use_tool[search] with query[{"tool": "other"}]', 'search', { query: '{"tool": "other"}' }],
  ])('%s', (text, tool, args) => {
    expect(parseAction(text)).toEqual(call(tool, args))
  })

  it('keeps the arguments as they were written', () => {
    expect(parseAction(String.raw`use_tool[a] with  b[x\]y] and  c[z] thank you`)).toEqual(
      call('a', { b: 'x]y', c: 'z' }, String.raw`b[x\]y] and  c[z]`),
    )
  })

  it('says what is wrong', () => {
    expect(reasonOf('I give up')).toBe('it has no tool call')
    expect(reasonOf('use_tool[]')).toMatch('must contain the name of a tool')
    expect(reasonOf('use_tool[search')).toMatch('must contain the name of a tool')
    expect(reasonOf(`use_tool[${'x'.repeat(300)}]`)).toMatch('must contain the name of a tool')
    expect(reasonOf('use_tool[a[b]] with c[d]')).toMatch('must contain the name of a tool')
    expect(reasonOf('use_tool[search] with')).toMatch('no ARGUMENT[VALUE]')
    expect(reasonOf('use_tool[search] with cats')).toMatch('no ARGUMENT[VALUE]')
    expect(reasonOf('use_tool[search] with query[cats')).toMatch("the bracket of 'query' is not closed")
    expect(reasonOf('use_tool[search] with query[a] query[b]')).toBe("the argument 'query' is given twice")
  })

  it('brings back every call that was written as text', () => {
    const name = fc.stringMatching(/^[A-Za-z_][\w.-]{0,20}$/)
    fc.assert(
      fc.property(name, fc.dictionary(name, fc.string(), { noNullPrototype: true }), (tool, args) => {
        expect(parseAction(formatAction({ tool, arguments: args }))).toMatchObject({
          kind: 'call',
          tool,
          arguments: args,
        })
      }),
      { numRuns: 1000 },
    )
  })
})

describe('JSON', () => {
  const args = { query: 'cats', limit: 5 }
  it.each([
    { tool: 'search', arguments: args },
    { tool: 'search', args },
    { name: 'search', parameters: args },
    { name: 'search', input: args },
    { tool_name: 'search', arguments: JSON.stringify(args) },
    { id: 'call_1', type: 'function', function: { name: 'search', arguments: JSON.stringify(args) } },
  ])('%j', (value) => {
    const text = JSON.stringify(value)
    expect(parseAction(text)).toEqual(call('search', args, JSON.stringify(args)))
    expect(parseAction(`Thought: I need [one] thing.\nAction: ${text} and then more {`)).toEqual(call('search', args))
    expect(parseAction(`Let me {see}, or {not:\n\`\`\`json\n${JSON.stringify(value, null, 2)}\n\`\`\``)).toEqual(
      call('search', args),
    )
    expect(parseAction(`Let me see:\n\`\`\`json\n${JSON.stringify(value, null, 2)}\n\`\`\``)).toEqual(
      call('search', args),
    )
  })

  it('needs no arguments', () => {
    expect(parseAction('{"tool": "now"}')).toEqual(call('now', {}))
  })

  it('is not misled by a call inside its texts', () => {
    const value = { tool: 'write', arguments: { text: 'use_tool[search] with query[x] }' } }
    expect(parseAction(JSON.stringify(value))).toEqual(call('write', value.arguments))
  })

  it('says what is wrong', () => {
    expect(reasonOf('{"tool": "search"')).toMatch('a brace is not closed')
    expect(reasonOf('{tool: search}')).toMatch('a syntax error')
    expect(reasonOf('{"query": "cats"}')).toMatch('does not name a tool')
    expect(reasonOf('{"tool": 5}')).toMatch('does not name a tool')
    expect(reasonOf('{"tool": "search", "arguments": [1]}')).toMatch('not an object')
    expect(reasonOf('{"tool": "search", "arguments": "cats"}')).toMatch('not an object')
    expect(reasonOf(`{"tool": "search", "arguments": ${'['.repeat(5000)}`)).toMatch('nested more than')
    expect(reasonOf(JSON.stringify({ tool: 'x', arguments: `{"a":${'['.repeat(5000)}` }))).toMatch('not an object')
  })

  it('brings back every call of plain data', () => {
    const name = fc.stringMatching(/^[A-Za-z_][\w.-]{0,20}$/)
    fc.assert(
      fc.property(name, fc.dictionary(fc.string(), fc.jsonValue(), { noNullPrototype: true }), (tool, args) => {
        const plain = JSON.parse(JSON.stringify(args))
        expect(parseAction(JSON.stringify({ tool, arguments: args }))).toEqual(call(tool, plain, JSON.stringify(plain)))
      }),
      { numRuns: 1000 },
    )
  })
})

describe('whatever a model writes', () => {
  it('is a call or a reason, and never an error', () => {
    const piece = fc.oneof(
      fc.constantFrom(
        'use_tool[',
        ' with ',
        'a[',
        ']',
        '\\',
        '{',
        '}',
        '"',
        '```json\n',
        '{"tool":"x",',
        '"arguments":',
        'and ',
        '\n',
      ),
      fc.string(),
    )
    fc.assert(
      fc.property(fc.array(piece), (pieces) => {
        const parsed = parseAction(pieces.join(''))
        expect(parsed.kind === 'call' ? typeof parsed.tool : typeof parsed.reason).toBe('string')
      }),
      { numRuns: 5000 },
    )
    for (const value of [undefined, null, 5, {}, []]) expect(reasonOf(value as never)).toMatch('not a text')
  })

  it('is not read when it is too long to be an action', () => {
    expect(reasonOf(`use_tool[a] with b[${'x'.repeat(300_000)}]`)).toMatch('longer than')
  })
})

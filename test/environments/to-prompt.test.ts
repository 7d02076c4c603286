import { toPrompt } from 'manyworlds/agents'
import { expect, it } from 'vitest'

it('has the instruction and the tools of the task', () => {
  expect(toPrompt({ input: 'Who wrote Emma?', tools: ['search', 'submit'] })).toBe(
    'Instruction: Who wrote Emma?\nAvailable tools: search, submit',
  )
  expect(toPrompt({ input: { instruction: 'Who wrote Emma?' } })).toBe(
    'Instruction: Who wrote Emma?\nAvailable tools: none',
  )
})

it('describes the tools of an environment that the task allows', () => {
  const tools = { search: { description: 'looks for pages', run: () => [] }, submit: () => 1, forbidden: () => 2 }
  expect(toPrompt({ input: 'Who?', tools: ['search', 'submit'] }, tools).split('\n')).toEqual([
    'Instruction: Who?',
    'Available tools: search, submit',
    '- search: looks for pages',
    'To call a tool, write use_tool[NAME] with ARGUMENT[VALUE], or {"tool": "NAME", "arguments": {…}}',
  ])
  expect(toPrompt({ input: 'Who?' }, tools)).toMatch('Available tools: search, submit, forbidden\n')
})

it('says what an input must be', () => {
  for (const input of [5, null, undefined, {}, { instruction: 5 }])
    expect(() => toPrompt({ input } as never)).toThrow('must be a text or an object with an `instruction`')
})

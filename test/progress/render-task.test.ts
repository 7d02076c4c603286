import { stripVTControlCharacters } from 'node:util'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { renderTask } from '../../src/cli/commands/show/render-task.ts'
import type { TaskErrorCode } from '../../src/errors.ts'
import type { StoredAttempt, StoredTask } from '../../src/store/stored-task.ts'
import { displayWidth } from '../../src/text/width.ts'
import type { NoteStep, Step } from '../../src/trajectory/step.ts'
import { response } from './made-up.ts'

const LAYOUT = { color: false, width: 80, logs: true }

const storedTask = (more: Partial<StoredTask> = {}): StoredTask => ({
  runId: 'brave-otter',
  id: 'task-17',
  agentName: 'explain',
  input: 'What is it?',
  status: 'success',
  response: response('task-17', { answer: 42 }),
  attempts: [],
  unfinished: [],
  subTaskIds: [],
  ...more,
})

const attempt = (more: Partial<StoredAttempt> = {}): StoredAttempt => ({
  attempt: 1,
  role: 'retried',
  status: 'timeout',
  error: { code: 'TASK_TIMEOUT', name: 'TaskError', message: 'took more than 10 s' },
  trajectory: [],
  logs: [],
  timing: { queuedMs: 1, runMs: 10_000, waitedMs: 0 },
  worker: { id: 'local-1', host: 'here', pid: 3 },
  endedAt: 0,
  ...more,
})

const step = (index: number, more: Partial<NoteStep> & Record<string, unknown> = {}): Step => ({
  index,
  atMs: 1530 * index,
  kind: 'note',
  ...more,
})
const shown = (trajectory: readonly Step[], full = false) =>
  renderTask(storedTask({ response: response('task-17', { trajectory }) }), { ...LAYOUT, full })

describe('a task', () => {
  it('is shown from its input to its answer', () => {
    const trajectory = [
      step(0, { action: { tool: 'search', query: 'it' }, observation: 'first line\nsecond line', reward: 0.5 }),
      step(1, { action: 'answer', thought: 'easy', usage: { inputTokens: 1200, outputTokens: 34 } }),
    ]
    const task = storedTask({
      response: response('task-17', { answer: { text: 'It is this.', score: 1 }, trajectory, logs: ['hello'] }),
      dependsOn: ['a', 'b'],
      info: { groundTruth: 42 },
    })
    expect(renderTask(task, LAYOUT)).toBe(
      `
task-17  success
run        brave-otter
agent      explain
attempts   1
worker     local-0 on here, pid 4711
time       queued 1 ms, ran 10 ms
usage      1,200 tokens in, 34 out
needs      a, b
printed    1 line
groundTruth: 42

input
  What is it?

2 steps
  0  +0 ms  reward 0.5
    action: { tool: 'search', query: 'it' }
    observation:
      first line
      second line
  1  +1.5 s  1,200 tokens in, 34 out
    action: answer
    thought: easy

logs
  hello

answer
  { text: 'It is this.', score: 1 }`.trimStart(),
    )
  })

  it('that failed has its error with the stack, and other attempts in short', () => {
    const failed = response('task-17', { status: 'failed', message: 'no luck' })
    failed.error!.stack = 'Error: no luck\n    at run (/project/agent.ts:3:4)'
    const superseded = attempt({ attempt: 2, role: 'superseded', status: 'success', answer: 'late' })
    const text = renderTask(
      storedTask({ status: 'failed', response: failed, attempts: [attempt(), attempt({ role: 'final' }), superseded] }),
      LAYOUT,
    )
    expect(text.slice(text.indexOf('error\n'))).toBe(
      `
error
  TASK_THREW
  Error: no luck
      at run (/project/agent.ts:3:4)

other attempts
  1  retried  timeout
    queued 1 ms, ran 10.0 s, local-1 on here, pid 3
    TASK_TIMEOUT: took more than 10 s
  2  superseded  success
    queued 1 ms, ran 10.0 s, local-1 on here, pid 3
    TASK_TIMEOUT: took more than 10 s
    late`.trimStart(),
    )
  })

  it('that is not done is shown as far as it has come', () => {
    const { response: _, ...pending } = storedTask({ status: 'pending' })
    expect(renderTask(pending, LAYOUT)).toMatch(/^task-17 {2}pending\n/)
    const tried = renderTask({ ...pending, attempts: [attempt({ trajectory: [step(0, { action: 'try' })] })] }, LAYOUT)
    expect(tried).toContain('action: try')
    expect(tried).toContain('TASK_TIMEOUT')
    expect(tried).not.toContain('other attempts')
  })

  it('shows logs only where they are asked for', () => {
    const task = storedTask({ response: response('task-17', { logs: ['secret'] }) })
    expect(renderTask(task, { ...LAYOUT, logs: false })).not.toContain('secret')
    expect(renderTask(task, { ...LAYOUT, logs: false })).toContain('printed    1 line')
  })
})

describe('values of a task', () => {
  it('that are conversations are shown as such', () => {
    const messages = [
      { role: 'system', content: 'Be\nbrief.' },
      { role: 'assistant', content: null, tool_calls: [{ id: 'c1', name: 'look' }] },
      { role: 'tool', tool_call_id: 'c1', content: [{ type: 'text', text: 'found' }] },
    ]
    expect(shown([step(0, { action: messages })])).toContain(`
    action:
      system
        Be
        brief.
      assistant
        tool_calls: [ { id: 'c1', name: 'look' } ]
      tool
        found
        tool_call_id: c1`)
  })

  it('that are long are cut and say so, unless all is wanted', () => {
    const trajectory = [
      step(0, { action: 'word '.repeat(3000), observation: Array.from({ length: 500 }, (_, i) => ({ i })) }),
    ]
    expect(shown(trajectory)).toContain('… (15,000 characters, --full shows all)')
    expect(shown(trajectory)).toContain('… (480 more, --full shows all)')
    expect(shown(trajectory, true)).not.toContain('--full')
    expect(shown(trajectory, true)).toContain('- { i: 499 }')
  })

  it('of all kinds have a form', () => {
    const cycle: Record<string, unknown> = { text: 'two\nlines' }
    cycle.self = cycle
    const text = shown([
      step(0, {
        a: 12n,
        b: new Map([['k', 'two\nlines']]),
        c: new Set([1, 2]),
        d: new Uint8Array(100),
        e: new Date(0),
        cycle,
      }),
      step(1, { n: '5', empty: '', nothing: null, f: new Error('inside') }),
    ])
    for (const part of [
      'a: 12n',
      "'k':",
      'c: Set(2) { 1, 2 }',
      '100 bytes: 00 00',
      'e: 1970-01-01',
      'self: [circular]',
    ])
      expect(text).toContain(part)
    for (const part of ["n: '5'", "empty: ''", 'nothing: null', 'Error: inside']) expect(text).toContain(part)
  })

  it('do not make it hang when they are graphs with more paths than can be shown', () => {
    let node: object = { text: 'two\nlines' }
    for (let i = 0; i < 40; i++) node = { left: node, right: node }
    expect(shown([step(0, { action: node })]).length).toBeLessThan(1_000_000)
  })

  it('never get a control character to the terminal, nor a line beyond its edge', () => {
    const value = fc.anything({
      withBigInt: true,
      withDate: true,
      withMap: true,
      withSet: true,
      withTypedArray: true,
      maxDepth: 4,
      key: fc.string({ unit: 'binary' }),
      values: [
        fc.string({ unit: 'binary' }),
        fc.string({ unit: 'grapheme' }),
        fc.integer(),
        fc.constant('\x1b[2J\x07'),
      ],
    })
    fc.assert(
      fc.property(value, fc.string({ unit: 'binary' }), fc.integer({ min: 40, max: 120 }), (data, text, width) => {
        const task = storedTask({
          id: text,
          input: data,
          subTaskIds: [text, text],
          response: response(text, {
            answer: text,
            logs: [text],
            trajectory: [step(0, { action: data, [text]: text })],
          }),
          attempts: [attempt({ error: { code: text as TaskErrorCode, name: text, message: text } })],
        })
        for (const line of renderTask(task, { color: true, width, logs: true })
          .split('\n')
          .map(stripVTControlCharacters)) {
          expect(line).not.toMatch(/\p{Cc}/u)
          expect(displayWidth(line), line).toBeLessThanOrEqual(width)
        }
      }),
      { numRuns: 500 },
    )
  })
})

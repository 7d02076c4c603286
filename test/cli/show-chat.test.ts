import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { stripVTControlCharacters } from 'node:util'
import fc from 'fast-check'
import { Runners } from 'manyworlds'
import { exactMatch } from 'manyworlds/grade'
import { RunFile } from 'manyworlds/runs'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { renderTask } from '../../src/cli/commands/show/render-task.ts'
import type { StoredTask } from '../../src/store/stored-task.ts'
import { displayWidth } from '../../src/text/width.ts'
import type { BranchReason } from '../../src/trajectory/branches.ts'
import type { ModelStep, Step, ToolStep } from '../../src/trajectory/step.ts'
import { supportDesk } from '../agents/support-desk.ts'
import { response } from '../progress/made-up.ts'
import { model, placed } from '../trajectory/made.ts'
import { manyworlds } from './manyworlds.ts'

const QUESTION = 'My copper kettle (order A-1042) arrived with a dent. Can I have my money back?'
const store = mkdtempSync(join(tmpdir(), 'manyworlds-chat-'))

beforeAll(async () => {
  const groundTruth = { refund: 'R-77', amount: 49.9, currency: 'EUR' }
  const task = supportDesk.task(QUESTION, { id: 'kettle', groundTruth })
  await Runners.runTask([task], { store, runId: 'desk', grade: exactMatch(), workerNum: 1 })
})

afterAll(async () => {
  await Runners.shutdown()
  rmSync(store, { recursive: true, force: true })
})

/** The task as it was stored, but for what differs from run to run. */
function kettle(): StoredTask {
  using file = RunFile.open('desk', { store })
  const task = file.task('kettle')!
  const trajectory = task.response!.trajectory.map((step) => ({ ...step, atMs: 1300 * step.index }))
  const made = {
    worker: { id: 'local-0', host: 'here', pid: 4711 },
    timing: { queuedMs: 1, runMs: 18_300, waitedMs: 0 },
  }
  return { ...task, response: { ...task.response!, ...made, trajectory } as StoredTask['response'] & object }
}

const task = (trajectory: readonly Step[]): StoredTask => ({
  ...{ runId: 'r', id: 't', agentName: 'a', input: 1, status: 'success', attempts: [], unfinished: [], subTaskIds: [] },
  response: response('t', { answer: 42, trajectory }),
})
const shown = (trajectory: readonly Step[], width = 80) =>
  renderTask(task(trajectory), { color: false, width, logs: false })

describe('a chat with tools', () => {
  it.each([80, 120])('is a pleasure to read in %d columns', async (width) => {
    const text = renderTask(kettle(), { color: false, width, logs: false })
    for (const line of text.split('\n')) expect(displayWidth(line)).toBeLessThanOrEqual(width)
    await expect(`${text}\n`).toMatchFileSnapshot(`fixtures/chat-${width}.txt`)
  })

  it('is shown by the program, without colors where there is no terminal, and whole with --full', async () => {
    const show = async (...words: string[]) =>
      (await manyworlds(['show', 'desk', 'kettle', '--dir', store, ...words])).stdout
    const text = await show()
    expect(text).not.toContain('\x1b')
    expect(text).toContain('… (2,044 more characters, --full shows all)')
    expect(text).not.toContain('Section 30 of the handbook')
    const full = await show('--full')
    expect(full).not.toContain('--full')
    expect(full).toContain('Section 30 of the handbook')
    const { response } = JSON.parse(await show('--json'))
    expect(response.trajectory[0]).toMatchObject({ kind: 'model', reply: { wire: expect.stringContaining('choices') } })
  })

  it('has errors in red, and what models thought in a quiet tone', () => {
    const text = renderTask(kettle(), { color: true, width: 120, logs: false })
    expect(text).toContain('\x1b[31mTimeoutError: photos.internal has not answered within 5000 ms\x1b[39m')
    expect(text).toContain('\x1b[2mreasoning: The customer wants money back')
  })
})

describe('model steps', () => {
  const ask = (more: Partial<ModelStep>) => model({ tokens: null, ...more })

  it('show a conversation that was sent again only as far as it is new', () => {
    const hello = { role: 'user', content: 'hello' } as const
    const request = { from: null, keep: 0, tools: '', wire: '' }
    const reply = { role: 'assistant', content: 'hi', wire: '' } as const
    const again = {
      ...request,
      added: [hello, { role: 'assistant', content: 'hi' }, { role: 'user', content: 'bye' }],
    } as const
    const text = shown(placed(ask({ request: { ...request, added: [hello] }, reply }), ask({ request: again })))
    expect(text.match(/hello/g)).toHaveLength(1)
    expect(text).toContain('  (the first 2 messages as in step 0)\n\n  user\n    bye\n')
  })

  it('say that a conversation was cut', () => {
    const cut = { from: 0, keep: 1, added: [{ role: 'user', content: 'go on' }], tools: '', wire: '' } as const
    expect(shown(placed(ask({}), ask({ request: cut })))).toContain(
      '(continues after the first 1 of the 2 messages of step 0)',
    )
  })

  it('show a picture by its size', () => {
    const image = { type: 'image_url', image_url: { url: `data:image/png;base64,${'A'.repeat(40_000)}` } }
    const added = [{ role: 'user', content: [{ type: 'text', text: 'What is this?' }, image] }] as const
    const text = shown(placed(ask({ request: { from: null, keep: 0, added, tools: '', wire: '' } })))
    expect(text).toContain('    What is this?\n    [image_url, 40 kB]\n')
  })

  it('that nobody of this package has recorded are shown as they are', () => {
    const text = shown([{ index: 0, atMs: 1, kind: 'model', reply: 'none' } as unknown as Step])
    expect(text).toContain('0  model  +1 ms\n    reply: none')
  })
})

describe('branches', () => {
  const note = (action: string, branch: number, why?: BranchReason, from = 0, step: number | null = null) => ({
    ...{ kind: 'note', action, branch, agent: `agent-${branch}` },
    ...(why && { opens: [{ id: branch, agent: `agent-${branch}`, parent: { branch: from, step, why } }] }),
  })

  it('of agents that work at once are shown one after the other, each whole and with its name', () => {
    const steps = placed(
      note('a', 1, 'parallel'),
      note('b', 2, 'parallel'),
      note('c', 1),
      note('inner', 3, 'subtask', 1, 2),
      note('d', 2),
    )
    expect(shown(steps)).toContain(`
  │ agent-1  in parallel (branch 1)
  │
  │ 0  +0 ms
  │   action: a
  │ 2  +2 ms
  │   action: c
  │
  │ │ agent-3  a sub-task (branch 3)
  │ │
  │ │ 3  +3 ms
  │ │   action: inner

  │ agent-2  in parallel (branch 2)
  │
  │ 1  +1 ms
  │   action: b
  │ 4  +4 ms
  │   action: d
`)
  })

  it('that come from each other, or from nowhere, are shown too', () => {
    const steps = placed(note('x', 1, 'parallel', 2, null), note('y', 2, 'parallel', 1, null), note('z', 7))
    for (const action of ['x', 'y', 'z']) expect(shown(steps)).toContain(`action: ${action}`)
  })

  it('of an agent that shortens its conversation are not indented, however many there are', () => {
    const steps = placed(
      ...Array.from({ length: 5000 }, (_, i) => note(`turn ${i}`, i, i > 0 ? 'compaction' : undefined, i - 1, i - 1)),
    )
    const text = shown(steps)
    expect(text).toContain(
      '\n  agent-4999  continues with a shorter conversation (branch 4999)\n\n  4999  +5.0 s\n    action: turn 4999',
    )
  })
})

it('nothing that a model or a tool says gets a control character to the terminal, or a line beyond its edge', () => {
  const text = fc.oneof(
    fc.string({ unit: 'binary' }),
    fc.string({ unit: 'grapheme', maxLength: 200 }),
    fc.constant('\x1b[2J\x07\u202e'),
    fc.json(),
  )
  const content = fc.oneof(
    text,
    fc.constant(null),
    fc.array(fc.record({ type: text, text })),
    fc.anything({ maxDepth: 3 }),
  )
  const call = fc.record({ id: text, name: text, raw: text })
  const message = fc.record(
    {
      role: fc.constantFrom('system', 'user', 'assistant', 'tool'),
      ...{ content, reasoning: text, calls: fc.array(call, { maxLength: 3 }), callId: text },
    },
    { requiredKeys: ['role', 'content'] },
  )
  const asked = fc.record({
    ...{ added: fc.array(message, { maxLength: 3 }), reply: message, tools: text, finish: text, server: text },
    ...{ retries: fc.nat(3), redacted: fc.boolean(), cached: fc.boolean(), agent: text, branch: fc.nat(12) },
  })
  const tool = fc.record({ name: text, raw: text, result: content, error: fc.option(content, { nil: undefined }) })
  const numbered = fc.array(fc.tuple(asked, tool), { maxLength: 4 })
  fc.assert(
    fc.property(numbered, fc.integer({ min: 24, max: 120 }), (pairs, width) => {
      const steps = pairs.flatMap(([{ added, reply, tools, server, agent, branch, ...rest }, called], at) => {
        const from = at === 0 ? null : 2 * at - 2
        const opens = [{ id: branch, agent, parent: { branch: Math.max(0, branch - 1), step: null, why: 'parallel' } }]
        return [
          ...[
            model({
              ...rest,
              tokens: null,
              server: { model: server },
              reply: { ...reply, wire: '' } as ModelStep['reply'],
            }),
          ].map((step) => ({ ...step, branch, opens, agent, request: { from, keep: 1, added, tools, wire: '' } })),
          {
            ...{ kind: 'tool', call: null, name: called.name, arguments: { raw: called.raw }, ms: 1 },
            ...{ result: called.result, error: called.error },
          } satisfies ToolStep,
        ]
      })
      const lines = renderTask(task(placed(...steps)), { color: true, width, logs: true }).split('\n')
      for (const line of lines.map(stripVTControlCharacters)) {
        expect(line).not.toMatch(/[\p{Cc}\u202e]/u)
        expect(displayWidth(line), line).toBeLessThanOrEqual(width)
      }
    }),
    { numRuns: 150 },
  )
})

import { defineAgent } from 'manyworlds'
import { openBranch } from '../../src/trajectory/branches.ts'
import { endEpisode } from '../../src/trajectory/episode.ts'
import { recordStep } from '../../src/trajectory/record.ts'
import type { Message, ModelStep, ToolStep } from '../../src/trajectory/step.ts'
import type { Usage } from '../../src/trajectory/usage.ts'

const SYSTEM = `You are the support desk of Northwind Kettles. Be friendly, brief and exact.

Rules
- Look up the order before you say anything about it.
- Refunds need a reason, an amount in EUR and the approval of the policy. Never promise what the policy does not allow.
- If a tool fails, try once more, then say that somebody will call back.
${Array.from({ length: 30 }, (_, i) => `- Section ${i + 1} of the handbook applies to orders of the category ${String.fromCharCode(65 + (i % 26))}.`).join('\n')}`

const POLICY = `Refund policy, version 12. Goods that arrive damaged are refunded in full within 30 days of delivery, if a photograph of the damage is on file. Shipping is refunded only if the whole order is sent back. ${'Exceptions are listed in the annex, by category and country, and are reviewed every quarter by the customer care team. '.repeat(14)}`

const TOOLS = JSON.stringify(
  ['lookup_order', 'get_policy', 'list_photos', 'create_refund', 'send_mail'].map((name) => ({
    type: 'function',
    function: { name, description: `The tool ${name}.`, parameters: { type: 'object' } },
  })),
)

const ORDER = {
  id: 'A-1042',
  customer: { name: 'Ada Zhou', mail: 'ada@example.org', since: 2019, country: 'DE' },
  items: [
    { sku: 'KET-17', name: 'Kettle, copper, 1.7 l', price: 49.9, quantity: 1 },
    { sku: 'FIL-02', name: 'Limescale filter', price: 7.5, quantity: 2 },
  ],
  delivered: '2026-11-12',
  status: 'delivered',
}

interface Asked {
  readonly said?: string | null
  readonly reasoning?: string
  readonly calls?: Message['calls']
  readonly added?: readonly Message[]
  readonly usage: Usage
}

/** A chat with tools, as an agent of this package records it. */
export const supportDesk = defineAgent({
  name: 'support-desk',
  run: async (question: string, ctx) => {
    let next = 0
    let messages = 0
    let previous: number | null = null
    const tell = async (step: ModelStep | ToolStep) => {
      await recordStep(ctx, step)
      return next++
    }
    const model = async ({ said = null, added = [], usage, ...more }: Asked & Partial<ModelStep>) => {
      const { reasoning, calls, ...rest } = more
      const reply = {
        role: 'assistant',
        content: said,
        ...(reasoning && { reasoning }),
        ...(calls && { calls }),
      } as const
      previous = await tell({
        ...{ kind: 'model', role: 'agent', policy: null, server: { model: 'north-chat-mini', id: `cmpl-${next}` } },
        request: { from: previous, keep: messages, added, tools: TOOLS, wire: '{"model":"north-chat-mini"}' },
        reply: { ...reply, wire: JSON.stringify({ choices: [{ message: reply }] }) },
        ...{ finish: calls ? 'tool_calls' : 'stop', cached: false, tokens: null, ms: 1240, retries: 0, usage },
        sampling: { temperature: 0.7, topP: 1, topK: 0, minP: 0, other: null },
        ...rest,
      })
      messages += added.length + 1
      return previous
    }
    const tool = (step: number, position: number, id: string, name: string, raw: string, end: object, ms: number) => {
      const value = parsed(raw)
      const given = { raw, ...(value !== undefined && { value }) }
      return tell({ kind: 'tool', call: { step, position, id }, name, arguments: given, ms, ...end })
    }

    const first = await model({
      added: [
        { role: 'system', content: SYSTEM },
        { role: 'user', content: question },
      ],
      reasoning: 'The customer wants money back for a kettle. First the order, then the policy.',
      said: 'I am sorry about that. Let me look at your order.',
      calls: [{ id: 'call_1', name: 'lookup_order', raw: '{"order_id": "A-1042"}' }],
      usage: { inputTokens: 1204, outputTokens: 61, cachedTokens: 1024, costUsd: 0.0012 },
    })
    await tool(first, 0, 'call_1', 'lookup_order', '{"order_id": "A-1042"}', { result: JSON.stringify(ORDER) }, 84)
    const second = await model({
      added: [{ role: 'tool', callId: 'call_1', content: JSON.stringify(ORDER) }],
      calls: [
        { id: 'call_2', name: 'get_policy', raw: '{"topic":"damaged goods","country":"DE"}' },
        { id: 'call_3', name: 'list_photos', raw: '{"order_id":"A-1042"}' },
      ],
      usage: { inputTokens: 1490, outputTokens: 44, cachedTokens: 1280, costUsd: 0.0009 },
      retries: 2,
      ms: 8310,
    })
    await tool(second, 0, 'call_2', 'get_policy', '{"topic":"damaged goods","country":"DE"}', { result: POLICY }, 132)
    const broken = { name: 'TimeoutError', message: 'photos.internal has not answered within 5000 ms' }
    await tool(second, 1, 'call_3', 'list_photos', '{"order_id":"A-1042"}', { error: broken }, 5001)
    const third = await model({
      added: [
        { role: 'tool', callId: 'call_2', content: POLICY },
        { role: 'tool', callId: 'call_3', content: 'TimeoutError: photos.internal has not answered within 5000 ms' },
      ],
      reasoning:
        'The policy allows a full refund for damaged goods within 30 days, if there is a photograph.\n\nThe photo tool failed. The rules say to try once more. The kettle costs 49.90; the filters are not damaged, so shipping and filters are not part of it.',
      calls: [{ id: 'call_4', name: 'list_photos', raw: '{"order_id":"A-1042"}' }],
      usage: { inputTokens: 2611, outputTokens: 118, cachedTokens: 1536, costUsd: 0.0021 },
    })
    const photos = [
      { type: 'text', text: '{"photos":[{"file":"IMG_0311.jpg","bytes":48211,"shows":"dent at the spout"}]}' },
    ]
    await tool(third, 0, 'call_4', 'list_photos', '{"order_id":"A-1042"}', { result: photos }, 902)
    const fourth = await model({
      added: [{ role: 'tool', callId: 'call_4', content: photos }],
      calls: [
        {
          id: 'call_5',
          name: 'create_refund',
          raw: '{"order_id":"A-1042","amount":49.9,"currency":"EUR","reason":"The kettle arrived with a dent at the spout; photograph IMG_0311.jpg is on file","notify":true',
        },
      ],
      usage: { inputTokens: 2790, outputTokens: 71, cachedTokens: 2560, costUsd: 0.0011 },
      redacted: true,
    })
    await tool(
      fourth,
      0,
      'call_5',
      'create_refund',
      '{"order_id":"A-1042","amount":49.9,"currency":"EUR","reason":"The kettle arrived with a dent at the spout; photograph IMG_0311.jpg is on file","notify":true',
      { error: "the arguments are no JSON: Expected ',' or '}' after property value in JSON at position 157" },
      0,
    )
    const branch = openBranch(ctx, { why: 'serial', agent: 'auditor' })
    await tell({
      ...{ kind: 'model', role: 'judge', agent: 'auditor', branch, policy: { name: 'auditor', version: 3 } },
      server: { model: 'north-audit-1' },
      request: {
        ...{ from: null, keep: 0, tools: '', wire: '{}' },
        added: [
          { role: 'system', content: 'You audit refunds. Say yes or no, and why, in one sentence.' },
          {
            role: 'user',
            content: 'Refund of EUR 49.90 for A-1042, dent at the spout, photograph on file, day 5 of 30.',
          },
        ],
      },
      reply: { role: 'assistant', content: 'Yes: damaged, photographed, and within 30 days.', wire: '{}' },
      ...{ finish: 'stop', cached: true, tokens: null, ms: 0, retries: 0 },
      usage: { inputTokens: 92, outputTokens: 14 },
      sampling: { temperature: 0, topP: 1, topK: 0, minP: 0, other: null },
    })
    const raw =
      '{"order_id":"A-1042","amount":49.9,"currency":"EUR","reason":"The kettle arrived with a dent at the spout; photograph IMG_0311.jpg is on file","notify":true}'
    const fifth = await model({
      added: [{ role: 'tool', callId: 'call_5', content: 'the arguments are no JSON' }],
      calls: [
        { id: 'call_6', name: 'create_refund', raw },
        { id: 'call_7', name: 'send_mail', raw: '{"to":"ada@example.org"}' },
      ],
      usage: { inputTokens: 2902, outputTokens: 80, cachedTokens: 2816, costUsd: 0.001 },
    })
    await tool(fifth, 0, 'call_6', 'create_refund', raw, { result: { refund: 'R-77', state: 'booked' } }, 311)
    await model({
      added: [
        { role: 'tool', callId: 'call_6', content: '{"refund":"R-77","state":"booked"}' },
        { role: 'tool', callId: 'call_7', content: 'sent' },
      ],
      said: 'Your refund of €49.90 is booked (R-77). It will be on your account in three to five days. 祝你好运! \u001b[31mThank you for your patience.',
      usage: { inputTokens: 3050, outputTokens: 40, cachedTokens: 2944, costUsd: 0.0008 },
    })
    await model({
      added: [{ role: 'user', content: 'Thanks! And how do I descale the new one?' }],
      said: 'Fill it with water and 30 g of citric acid, boil it once, wait for half an hour, rinse it twice, and',
      usage: { inputTokens: 3110, outputTokens: 32, costUsd: 0.002 },
      finish: 'length',
    })
    endEpisode(ctx, { ending: { kind: 'truncated', by: 'maxSteps' }, reward: 0.5, success: null })
    return { refund: 'R-77', amount: 49.9, currency: 'EUR' }
  },
})

function parsed(raw: string): unknown {
  try {
    return JSON.parse(raw)
  } catch {
    return undefined
  }
}

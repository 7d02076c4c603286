import type { Message, Step } from '../../src/trajectory/step.ts'

/** Makes steps that look like those of real agents: conversations with tools, and episodes in an environment. */

const WORDS =
  `invoice refund customer order shipment balance ledger account query result table column region quarter revenue
forecast sensor reading threshold alarm pump valve pressure schedule delay route parcel warehouse stock price margin contract
clause deadline report summary draft review commit branch merge build deploy rollback incident latency memory cache index`
    .split(/\s+/)
    .filter((word) => word !== '')

export type Random = () => number

export const pick = <Item>(items: readonly Item[], random: Random): Item => items[Math.floor(random() * items.length)]!

export function sentence(words: number, random: Random): string {
  const text = Array.from({ length: words }, () => pick(WORDS, random)).join(' ')
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}.`
}

export interface StepsOptions {
  readonly count: number
  /** The duration of the attempt. */
  readonly ms: number
  readonly version: number
  readonly random: Random
  /** With token ids, log-probabilities, and the texts of tokens in the reply. */
  readonly tokens: boolean
}

const TOOLS = JSON.stringify([
  { type: 'function', function: { name: 'lookup', description: 'Finds a record.', parameters: { type: 'object' } } },
])
const WIRE = JSON.stringify({ model: 'small-model', temperature: 1 })

/** Model calls that alternate with calls of a tool. */
export function conversation({ count, ms, version, random, tokens }: StepsOptions): Step[] {
  const steps: Step[] = []
  for (let index = 0; index < count; index++) {
    const atMs = (ms * index) / count
    const place = { index, atMs: Math.round(atMs * 1000) / 1000 }
    if (index % 2 === 1) {
      const order = Math.floor(random() * 1e6)
      steps.push({
        ...place,
        kind: 'tool',
        call: { step: index - 1, position: 0, id: `call_${index}` },
        name: 'lookup',
        arguments: { raw: `{"order":${order}}`, value: { order } },
        ...(random() < 0.03
          ? { error: { name: 'Error', message: `order ${order} not found` } }
          : { result: { order, status: pick(WORDS, random), total: Math.round(random() * 1e5) / 100 } }),
        ms: Math.round(random() * 40 * 1000) / 1000,
      })
      continue
    }
    const isLast = index >= count - 2
    const content = isLast ? sentence(12, random) : ''
    const parts = isLast ? (content.match(/\s?\S+/g) ?? []) : ['lookup', '(', ')']
    const calls = isLast ? undefined : [{ id: `call_${index + 1}`, name: 'lookup', raw: '{"order":1}' }]
    const logProbs = Float64Array.from(parts, () => -6 * random() ** 4)
    steps.push({
      ...place,
      kind: 'model',
      role: 'agent',
      policy: { name: 'small-model', version },
      server: { model: 'small-model' },
      request: {
        from: index === 0 ? null : index - 2,
        keep: index === 0 ? 0 : index,
        added:
          index === 0 ? opening(random) : [{ role: 'tool', content: pick(WORDS, random), callId: `call_${index}` }],
        tools: index === 0 ? TOOLS : '',
        wire: WIRE,
      },
      reply: {
        role: 'assistant',
        content: isLast ? content : null,
        ...(calls && { calls }),
        wire: replyWire(content, parts, tokens ? logProbs : undefined),
      },
      finish: isLast ? 'stop' : 'tool_calls',
      cached: false,
      tokens: tokens
        ? {
            ...{ tokenizer: 'small-model', from: index === 0 ? null : index - 2, tail: Int32Array.of(1, 2, 3) },
            ...{ completion: Int32Array.from(parts, () => Math.floor(random() * 32_000)), logProbs },
            ...{ of: 'raw' as const, constrained: false },
          }
        : null,
      sampling: { temperature: 1, topP: null, topK: null, minP: null, other: {} },
      usage: {
        inputTokens: 200 + 60 * index,
        outputTokens: parts.length,
        costUsd: (200 + 60 * index) * 2e-7 + parts.length * 8e-7,
      },
      ms: Math.round((ms / count) * 0.8 * 1000) / 1000,
      retries: 0,
    })
  }
  return steps
}

const opening = (random: Random): Message[] => [
  { role: 'system', content: 'You answer questions about orders. Use the tool `lookup`. Answer in one sentence.' },
  { role: 'user', content: `${sentence(14, random)} What is the state of the order?` },
]

function replyWire(content: string, parts: readonly string[], logProbs: Float64Array | undefined): string {
  return JSON.stringify({
    choices: [
      {
        message: { content },
        ...(logProbs && { logprobs: { content: parts.map((token, at) => ({ token, logprob: logProbs[at] })) } }),
      },
    ],
  })
}

const MOVES = ['north', 'east', 'south', 'west', 'take', 'wait'] as const

/** Actions in an environment, with candidates and rewards. */
export function episode({ count, ms, version, random }: StepsOptions): Step[] {
  return Array.from({ length: count }, (_, index): Step => {
    const choice = Math.floor(random() * MOVES.length)
    return {
      ...{ index, atMs: Math.round(((ms * index) / count) * 1000) / 1000, kind: 'action' },
      observation: { room: Math.floor(random() * 64), sees: pick(WORDS, random), energy: 100 - index },
      candidates: MOVES,
      ...{ action: MOVES[choice]!, choice, logProb: -random() * 2, value: random(), mode: 'sample' },
      policy: { name: 'walker', version },
      reward: index === count - 1 ? Number(random() < 0.6) : 0,
    }
  })
}

/** Notes that a program wrote. */
export function notes({ count, ms, random }: StepsOptions): Step[] {
  return Array.from(
    { length: count },
    (_, index): Step => ({
      ...{ index, atMs: Math.round(((ms * index) / count) * 1000) / 1000, kind: 'note' },
      text: sentence(10, random),
      data: { part: index, of: count, bytes: Math.floor(random() * 1e6) },
    }),
  )
}

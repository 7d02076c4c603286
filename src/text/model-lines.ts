import type { Message, ModelStep, Step } from '../trajectory/step.ts'
import { callLines } from './call-lines.ts'
import { contentLines } from './content-lines.ts'
import { escapeControls, oneLine } from './escape-controls.ts'
import { factRows } from './fact-rows.ts'
import { jsonIn } from './json-in.ts'
import type { Paint } from './paint.ts'
import { count, counted, duration, usageText } from './quantities.ts'
import type { Talk } from './talk.ts'
import type { ValueLayout } from './value-lines.ts'
import { cut, displayWidth } from './width.ts'
import { wrap } from './wrap.ts'

type Model = Step & ModelStep

const INDENT = '  '
const SYSTEM = { chars: 320, lines: 5 }
const SAID = { chars: 1500, lines: 30 }
const REASONING = { chars: 700, lines: 12 }

/** The speaker of a reply, by the role of the caller. */
const SPEAKERS = { agent: 'assistant', judge: 'judge', user: 'simulated user' } as const
const COLORS: Readonly<Record<string, Parameters<Paint>[0]>> = {
  system: ['bold', 'magenta'],
  user: ['bold', 'green'],
  assistant: ['bold', 'blue'],
  judge: ['bold', 'cyan'],
  'simulated user': ['bold', 'green'],
  tool: ['bold', 'yellow'],
}
/** Normal finish reasons, which are not shown. */
const USUAL_FINISH = new Set(['stop', 'tool_calls', 'tool-calls', 'end_turn', 'tool_use', ''])

/** A model call: the new messages of its request and the reply, as blocks to be separated by empty lines. */
export function modelBlocks(step: Model, talk: Talk, layout: ValueLayout): string[][] {
  const { messages, remark } = talk.newMessages(step)
  const tools = talk.newTools(step)
  const blocks = messages.map((message) => messageLines(message, layout))
  // The tools come before the messages, but after a system message.
  if (tools !== undefined) blocks.splice(messages[0]?.role === 'system' ? 1 : 0, 0, toolNames(tools, layout))
  const before = remark === '' ? [] : [wrap(`(${remark})`, layout.width).map((row) => layout.paint('dim', row))]
  return [...before, ...blocks, replyLines(step, talk, layout)]
}

function messageLines(message: Message, layout: ValueLayout): string[] {
  const { role, content, reasoning, calls = [], callId } = message
  const { paint } = layout
  const inside = narrower(layout)
  const about = callId === undefined ? '' : cut(oneLine(callId), layout.width - displayWidth(role) - 2)
  return [
    paint(COLORS[role] ?? 'bold', role) + paint('dim', about === '' ? '' : `  ${about}`),
    ...[
      ...reasoningLines(reasoning, inside),
      ...contentLines(content, inside, role === 'system' ? SYSTEM : SAID),
      ...calls.flatMap(({ name, raw }) =>
        callLines({ mark: 'calls ', name, arguments: { raw }, facts: '', end: undefined }, inside).slice(0, -1),
      ),
    ].map(indent),
  ]
}

function replyLines(step: Model, talk: Talk, layout: ValueLayout): string[] {
  const { index, atMs, role, reply } = step
  const { paint } = layout
  const inside = narrower(layout)
  const speaker = SPEAKERS[role]
  const said = contentLines(reply.content, inside, SAID)
  // Calls with a step of their own are shown there, with their results.
  const calls = (reply.calls ?? []).flatMap(({ id, name, raw }, position) => {
    if (talk.toolOf(step, position)) return []
    const told = talk.toldOf(step, id)
    const end = told && { result: told.content }
    return callLines({ mark: 'calls ', name, arguments: { raw }, facts: '', end }, inside)
  })
  const isEmpty = said.length === 0 && !reply.reasoning && (reply.calls ?? []).length === 0
  const lines = [
    ...reasoningLines(reply.reasoning, inside),
    ...(isEmpty ? [paint('dim', 'an empty reply')] : said),
    ...calls,
    ...factLines(step, inside),
  ]
  const head = `${index}  ${speaker}  +${duration(atMs)}`
  if (displayWidth(head) > layout.width) return [cut(head, layout.width), ...lines.map(indent)]
  const painted = `${paint('dim', `${index}  `)}${paint(COLORS[speaker]!, speaker)}${paint('dim', `  +${duration(atMs)}`)}`
  return [painted, ...lines.map(indent)]
}

/** Facts in a dim color, `[small-model · 1,204 tokens in, 61 out, $0.0012 · 1.2 s]`, and unusual ones in yellow. */
function factLines(step: Model, { paint, width }: ValueLayout): string[] {
  const { server, usage, ms, policy, cached, retries, finish, redacted } = step
  const quiet = [
    oneLine(server.model),
    policy ? oneLine(`policy ${policy.name} v${policy.version}`) : '',
    usage ? usageText(usage) : '',
    cached ? 'from the cache' : duration(ms),
  ]
  const unusual = [
    retries > 0 ? (retries === 1 ? '1 retry' : `${count(retries)} retries`) : '',
    USUAL_FINISH.has(finish) ? '' : `ended by ${oneLine(finish)}`,
    redacted ? 'redacted: secrets were removed' : '',
  ]
  const facts = [
    ...quiet.filter((fact) => fact !== '').map((text) => ({ text, color: 'dim' as const })),
    ...unusual.filter((fact) => fact !== '').map((text) => ({ text, color: 'yellow' as const })),
  ]
  return factRows(facts, { paint, width })
}

/** The reasoning, in a dimmer color than the reply. */
function reasoningLines(reasoning: string | undefined, layout: ValueLayout): string[] {
  if (reasoning === undefined || reasoning === '') return []
  const { paint, width } = layout
  const text = reasoning.trim()
  const line = `reasoning: ${escapeControls(text)}`
  if (!line.includes('\n') && displayWidth(line) <= width) return [paint('dim', line)]
  const rows = contentLines(text, narrower(layout), REASONING)
  return [paint('dim', cut('reasoning:', width)), ...rows.map((row) => paint('dim', indent(row)))]
}

/** `3 tools: search, read, answer` */
function toolNames(tools: string, { paint, width }: ValueLayout): string[] {
  const list = jsonIn(tools)
  const names = Array.isArray(list) ? list.map(nameOf).filter((name) => name !== '') : []
  if (names.length === 0) return [paint('dim', cut('tools', width))]
  return wrap(`${counted(names.length, 'tool')}: ${names.join(', ')}`, width).map((row) => paint('dim', row))
}

function nameOf(tool: unknown): string {
  const { name, function: inner } = (tool ?? {}) as { name?: unknown; function?: { name?: unknown } | null }
  const found = name ?? inner?.name
  return typeof found === 'string' ? oneLine(found) : ''
}

const narrower = (layout: ValueLayout): ValueLayout => ({ ...layout, width: layout.width - INDENT.length })
const indent = (line: string): string => INDENT + line

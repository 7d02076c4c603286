import type { Talk } from '../../../src/text/talk.ts'
import type { Message } from '../../../src/trajectory/step.ts'
import { figure } from '../text/quantities.ts'
import { inlineText } from './inline-text.ts'
import type { Item } from './story.ts'

const CHARS = 240

export interface ShortLine {
  readonly step: number
  readonly who: string
  readonly text: string
  readonly isFailure?: boolean
}

/** An item of a conversation in one or two lines. */
export function shortLines(item: Item, talk: Talk): ShortLine[] {
  if (item.kind === 'branch' || !item.shown.isWellFormed) return []
  const { step } = item.shown
  const line = (who: string, text: string, isFailure = false): ShortLine => ({ step: step.index, who, text, isFailure })
  switch (step.kind) {
    case 'model': {
      const { messages } = talk.newMessages(step)
      const asked = messages.filter(({ role }) => role === 'user').map((message) => line('user', contentText(message)))
      const calls = (step.reply.calls ?? []).map(({ name }) => name).join(', ')
      const said = contentText(step.reply)
      return [...asked, line(step.role === 'agent' ? 'assistant' : step.role, said === '' ? `calls ${calls}` : said)]
    }
    case 'tool':
      return [
        line(
          step.name,
          `${cut(step.arguments.raw)} → ${valueText(step.error ?? step.result)}`,
          step.error !== undefined,
        ),
      ]
    case 'action':
      return [line('action', `${valueText(step.action)}${step.reward === 0 ? '' : `, reward ${figure(step.reward)}`}`)]
    case 'note':
      return [line('note', step.text === undefined ? valueText(step.action ?? step.data) : cut(step.text))]
  }
}

function contentText({ content }: Message): string {
  if (typeof content === 'string') return cut(content)
  if (!Array.isArray(content)) return valueText(content)
  return cut(content.map((part: { text?: unknown }) => (typeof part?.text === 'string' ? part.text : '')).join(' '))
}

function valueText(value: unknown): string {
  if (value === undefined || value === null) return ''
  if (typeof value === 'string') return cut(value)
  return inlineText(value, CHARS) ?? (Array.isArray(value) ? '[…]' : '{…}')
}

const cut = (text: string): string => (text.length > CHARS ? `${text.slice(0, CHARS)}…` : text)

import { hash } from 'node:crypto'
import type { Content } from './content.ts'
import type { RequestBody } from './request.ts'

/** A model that does what it is told, and one that turns what graders say into what the other is told. */

const say = (text: string): Content => ({ text, toolCalls: [], finish: 'stop' })

const contentOf = ({ messages = [] }: RequestBody, role: string): string => {
  const content = messages.findLast((message) => message.role === role)?.content ?? ''
  return typeof content === 'string' ? content : JSON.stringify(content)
}

const RULE = /For (\w+) write ([^.]{1,40})\./g
/** The share of tasks that it does right without being told how. */
const LUCK = 0.15
const RIGHT: Readonly<Record<string, string>> = {
  ...{ lengths: 'N cm', prices: 'EUR N', ages: 'N years', rooms: 'No N', scores: 'N pts', weights: 'N kg' },
}

/** What a kind of task is expected to be written as. */
export const rules = RIGHT

/** Asked for `lengths 17`, it answers `17 cm` if its instructions, or the description of a tool, say `For lengths write N cm.` */
export function student(body: RequestBody): Content {
  const [kind = '', value = ''] = contentOf(body, 'user').split(' ')
  const described = (body.tools ?? []).map(({ function: { description = '' } }) => description)
  const told = new Map(
    [...[contentOf(body, 'system'), ...described].join('\n').matchAll(RULE)].map(([, a, b]) => [a!, b!]),
  )
  const isLucky = Number.parseInt(hash('sha256', `${kind} ${value}`).slice(0, 4), 16) / 0xffff < LUCK
  const form = told.get(kind) ?? (isLucky ? RIGHT[kind] : undefined) ?? 'N'
  return say(form.replace('N', value))
}

/** Adds the first rule of the feedback that the text does not have. Without feedback it has nothing to say but to be careful. */
export function reflector(body: RequestBody): Content {
  const prompt = contentOf(body, 'user')
  const { text, seen } = partsOf(prompt)
  const [fresh = 'Be careful.'] = [...seen.matchAll(RULE)].map(([rule]) => rule).filter((rule) => !text.includes(rule))
  return say(`I see.\n<new_text>\n${text} ${fresh}\n</new_text>`)
}

const NOTE = /^Feedback:\nWrong: (.{1,200})$/gm

/** Takes notes: adds the first correction of the feedback that the text does not have. It stands in for a strong model where there is none. */
export function noteTaker(body: RequestBody): Content {
  const prompt = contentOf(body, 'user')
  const { text, seen } = partsOf(prompt)
  const [fresh = 'Be careful.'] = [...seen.matchAll(NOTE)]
    .map(([, note]) => note!)
    .filter((note) => !text.includes(note))
  return say(`<new_text>${text} ${fresh}</new_text>`)
}

/** Of the request to rewrite a text: the text, and what was done with it. */
function partsOf(prompt: string): { readonly text: string; readonly seen: string } {
  const [, text = '', rest = ''] =
    /## The text as it is now\n\n([\s\S]*?)\n\n(?:It also has|With this text|Write another)([\s\S]*)/.exec(prompt) ?? []
  return { text, seen: rest.slice(rest.indexOf('## Example')) }
}

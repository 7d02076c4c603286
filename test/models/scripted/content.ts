import { exampleOf, wrongExampleOf } from './example.ts'
import { noteTaker, reflector, student } from './learning.ts'
import type { RequestBody } from './request.ts'

export interface ToolCall {
  readonly id: string
  readonly type: 'function'
  readonly function: { readonly name: string; readonly arguments: string }
}

export type FinishReason = 'stop' | 'length' | 'tool_calls' | 'content_filter'

/** What a model says. */
export interface Content {
  readonly text: string
  readonly toolCalls: readonly ToolCall[]
  readonly reasoning?: { readonly field: string; readonly text: string }
  readonly finish: FinishReason
}

export interface ContentContext {
  readonly body: RequestBody
  /** Begins the ids of tool calls: unique to the request. */
  readonly id: string
  readonly random: () => number
}

type MakeContent = (context: ContentContext, arg: string | undefined) => Content

const WORDS = 'the of and to in is it you that he was for on are with as his they be at one have this from'.split(' ')

const say = (text: string, finish: FinishReason = 'stop'): Content => ({ text, toolCalls: [], finish })

const words = (count: number, random: () => number) =>
  Array.from({ length: count }, () => WORDS[Math.floor(random() * WORDS.length)]).join(' ')

const call = (id: string, calls: readonly (readonly [name: string, args: string])[]): Content => ({
  text: '',
  toolCalls: calls.map(([name, args], index) => ({
    id: `call_${id}_${index}`,
    type: 'function',
    function: { name, arguments: args },
  })),
  finish: 'tool_calls',
})

const toolResults = ({ messages = [] }: RequestBody) => messages.filter(({ role }) => role === 'tool').length
const firstTool = ({ tools }: RequestBody) => tools?.[0]?.function ?? { name: 'add', parameters: {} }
const schemaOf = ({ response_format }: RequestBody) => response_format?.json_schema?.schema

const goodCall = ({ body, random }: ContentContext) => {
  const { name, parameters } = firstTool(body)
  return [name, JSON.stringify(exampleOf({ type: 'object', ...parameters }, random))] as const
}

function lastUserText({ messages = [], prompt }: RequestBody): string {
  const content = messages.findLast(({ role }) => role === 'user')?.content ?? prompt ?? ''
  return typeof content === 'string' ? content : JSON.stringify(content)
}

/** By the name that stands in the request's model. */
export const CONTENTS: Readonly<Record<string, MakeContent>> = {
  /** `text:200`: so many words. */
  text: ({ random }, count = '6') => say(words(Number(count), random)),
  /** What the user said last. */
  echo: ({ body }) => say(lastUserText(body)),
  /** `tools:3`: three rounds of one call each to the first tool, then text. */
  tools: (context, rounds = '1') => {
    const done = toolResults(context.body)
    return done < Number(rounds) ? call(context.id, [goodCall(context)]) : say(`done after ${done} calls`)
  },
  /** `parallel:3`: three calls in one answer, then text. */
  parallel: (context, count = '2') =>
    toolResults(context.body) === 0
      ? call(
          context.id,
          Array.from({ length: Number(count) }, () => goodCall(context)),
        )
      : say('done'),
  /** One good call beside a tool that does not exist, arguments that are not JSON, and arguments of wrong types; then text. */
  'bad-tools': (context) => {
    if (toolResults(context.body) > 0) return say('done')
    const { name, parameters } = firstTool(context.body)
    const wrong = JSON.stringify(wrongExampleOf(parameters))
    return call(context.id, [goodCall(context), ['no-such-tool', '{}'], [name, '{"a": 1,'], [name, wrong]])
  },
  /** By the schema of `response_format`. */
  json: ({ body, random }) => say(JSON.stringify(exampleOf(schemaOf(body), random))),
  'json-wrong': ({ body }) => say(JSON.stringify(wrongExampleOf(schemaOf(body)))),
  'json-broken': ({ body, random }) => say(JSON.stringify(exampleOf(schemaOf(body), random)).slice(0, -1)),
  /** `reasoning:reasoning`: servers differ in the name of the field. */
  reasoning: ({ random }, field = 'reasoning_content') => ({
    ...say(words(6, random)),
    reasoning: { field, text: words(12, random) },
  }),
  /** Stopped by a filter, as a finish reason; `filter-400` is the other form. */
  filter: ({ random }) => say(words(2, random), 'content_filter'),
  /** Does what its instructions say. */
  student: ({ body }) => student(body),
  /** Rewrites instructions. */
  reflector: ({ body }) => reflector(body),
  /** Rewrites instructions of models that are not scripted. */
  notes: ({ body }) => noteTaker(body),
  /** Rewrites them, and forgets to say where the new text ends. */
  'reflector-cut': ({ body }) => say(reflector(body).text.slice(0, -12), 'length'),
}

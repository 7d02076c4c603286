import { rewardOf } from '../failed-rollouts.ts'
import type { LearnerGroup } from '../learner.ts'
import { exampleText } from './example-text.ts'
import { type Texts, toolOf } from './texts.ts'

/** The markers around the new text. Unlike a code fence, a text is unlikely to contain them. */
export const OPEN = '<new_text>'
export const CLOSE = '</new_text>'

/** The maximum length of all examples: about 25,000 tokens. One example has at most a quarter of it. */
const EXAMPLES_CHARS = 100_000

export interface Reflection {
  readonly texts: Texts
  /** The name of the text to rewrite. */
  readonly component: string
  /** Episodes with these texts. */
  readonly groups: readonly LearnerGroup[]
  readonly maxChars: number
}

/**
 * The prompt for the model that rewrites a text. Of the ground truth, it contains only what graders disclose in their
 * feedback.
 */
export function reflectionPrompt({ texts, component, groups, maxChars }: Reflection): string {
  return [
    `An assistant works on tasks. You improve ${whatIs(component)}.`,
    section('The text as it is now', texts[component]!),
    ...others(texts, component),
    'With this text the assistant did the following. For each task you see what it was given, what it did, its answer and the feedback of a grader.',
    ...examplesOf(groups),
    [
      'Write a new version of the text with which the assistant would have done all of these tasks well, and others like them that you have not seen.',
      '- Find out from the feedback what went wrong, and which rule would have avoided it. State the rule, not the answer of one task.',
      '- Keep what works. Where the feedback has facts about this kind of task (formats, units, names, exceptions), write them down: the assistant will not see the feedback.',
      '- If an example went well, write down what made it so, if it is not there yet.',
      `- Write plainly, for the assistant, in at most ${maxChars} characters. Do not speak of these examples, of feedback or of grading.`,
    ].join('\n'),
    ending(),
  ].join('\n\n')
}

/** All examples or, if they are too long, those with the lowest rewards. */
function examplesOf(groups: readonly LearnerGroup[]): string[] {
  const all = groups.flatMap(({ input, members }) => members.map((member) => ({ input, member })))
  const texts = all.map(({ input, member }, index) => exampleText(index + 1, input, member))
  const rewardAt = (index: number) => rewardOf(all[index]!.member) ?? Number.NEGATIVE_INFINITY
  const worstFirst = [...texts.keys()].sort((a, b) => rewardAt(a) - rewardAt(b) || a - b)
  let left = EXAMPLES_CHARS
  const kept = new Set(worstFirst.filter((index) => (left -= texts[index]!.length) >= 0))
  return texts.filter((_, index) => kept.has(index))
}

/** The same request without any results, for the control experiment. */
export function blindPrompt({ texts, component, maxChars }: Reflection, wish: string): string {
  return [
    `An assistant works on tasks, of which you are told nothing. You write another version of ${whatIs(component)}.`,
    section('The text as it is now', texts[component]!),
    ...others(texts, component),
    `Write another version: ${wish} At most ${maxChars} characters.`,
    ending(),
  ].join('\n\n')
}

const ending = () => `Answer with the whole new text, and nothing else, between ${OPEN} and ${CLOSE}.`

function whatIs(component: string): string {
  const tool = toolOf(component)
  return tool === undefined
    ? 'the instructions that it is given before each task'
    : `the description of its tool \`${tool}\`, by which it decides when and how to call it`
}

function others(texts: Texts, component: string): string[] {
  const names = Object.keys(texts).filter((name) => name !== component)
  if (names.length === 0) return []
  const list = names.map((name) =>
    section(toolOf(name) ? `Description of the tool ${toolOf(name)}` : name, texts[name]!),
  )
  return ['It also has these texts, which stay as they are:', ...list]
}

const section = (title: string, text: string) => `## ${title}\n\n${text}`

/** Why an answer is unusable. */
export type Unusable = 'cut' | 'unmarked' | 'empty' | 'long' | 'same'

/**
 * The new text in an answer: between the last pair of markers or, without markers, in the only code fence. Takes linear
 * time for any input.
 */
export function textIn(
  answer: string,
  { before, maxChars }: { readonly before: string; readonly maxChars: number },
): { readonly text: string } | { readonly unusable: Unusable } {
  const found = marked(answer) ?? fenced(answer)
  if (found === undefined) return { unusable: answer.includes(OPEN) ? 'cut' : 'unmarked' }
  const text = unfenced(found.trim())
  if (text === '') return { unusable: 'empty' }
  if (text.length > maxChars) return { unusable: 'long' }
  return squeezed(text) === squeezed(before) ? { unusable: 'same' } : { text }
}

function marked(answer: string): string | undefined {
  const end = answer.lastIndexOf(CLOSE)
  const begin = end < 0 ? -1 : answer.lastIndexOf(OPEN, end)
  return begin < 0 ? undefined : answer.slice(begin + OPEN.length, end)
}

const FENCE = '```'

/** Only if it is unambiguous: exactly one fence, in an answer without the opening marker. */
function fenced(answer: string): string | undefined {
  if (answer.includes(OPEN)) return undefined
  const parts = answer.split(FENCE, 4)
  return parts.length === 3 ? withoutLanguage(parts[1]!) : undefined
}

/** Some models put a fence inside the markers. */
function unfenced(text: string): string {
  if (!text.startsWith(FENCE) || !text.endsWith(FENCE) || text.length < 2 * FENCE.length) return text
  const inner = text.slice(FENCE.length, -FENCE.length)
  return inner.includes(FENCE) ? text : withoutLanguage(inner)
}

/** The first line of a fence may name a language. */
function withoutLanguage(inner: string): string {
  const end = inner.indexOf('\n')
  const first = end < 0 ? '' : inner.slice(0, end)
  return (/^[\w-]{0,20}$/.test(first) ? inner.slice(first.length) : inner).trim()
}

const squeezed = (text: string) => text.split(/\s+/).filter(Boolean).join(' ')

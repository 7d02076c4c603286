import { commands } from '../commands.ts'
import { flagOf, isMany, type Option, type Positional, type Spec, type Suggest } from './command.ts'

interface Candidate {
  readonly word: string
  readonly about?: string
}
type Answer = 'files' | readonly Candidate[]

/**
 * Answers the scripts of `manyworlds completion`, which call `manyworlds __complete -- WORD…` with the words of the
 * command line up to the cursor, the unfinished one last. The first line of the answer is `files`, which means that the
 * shell completes files, or `words`. Words follow one per line, each with a tab and a description.
 */
export async function answerShell(args: readonly string[]): Promise<number> {
  const words = args.slice(args.indexOf('--') + 1)
  const current = words.at(-1) ?? ''
  const answer = await candidates(words.slice(0, -1), current)
  const lines =
    answer === 'files'
      ? [answer]
      : [
          'words',
          ...answer.filter(({ word }) => word.startsWith(current)).map(({ word, about = '' }) => `${word}\t${about}`),
        ]
  process.stdout.write(`${lines.join('\n')}\n`)
  return 0
}

async function candidates([name, ...words]: readonly string[], current: string): Promise<Answer> {
  if (name === undefined) return commands.map(({ spec }) => ({ word: spec.name, about: spec.summary }))
  const spec = commands.find((command) => command.spec.name === name)?.spec
  if (spec === undefined) return []
  const positionals = Object.values(spec.positionals)
  const afterDashes = positionals.find((positional) => positional.afterDashes)
  if (words.includes('--') && afterDashes !== undefined) return suggested(afterDashes)

  const [, flag, separator] = /^(--[^=]+)(=)/.exec(current) ?? []
  if (separator !== undefined) return inlineValues(optionCalled(spec, flag!), flag!)
  const open = optionCalled(spec, words.at(-1) ?? '')
  if (open !== undefined && open.type !== 'flag') return suggested(open)
  if (current.startsWith('-')) return unusedOptions(spec, words)

  const place = positionalWords(spec, words).length
  const positional = positionals[Math.min(place, positionals.length - 1)]
  if (positional === undefined || positional.afterDashes || (place >= positionals.length && !positional.many)) return []
  return suggested(positional)
}

function optionCalled(spec: Spec, word: string): Option | undefined {
  return Object.entries(spec.options).find(([key, { short }]) => word === flagOf(key) || word === `-${short}`)?.[1]
}

async function inlineValues(option: Option | undefined, flag: string): Promise<Answer> {
  const answer = option === undefined || option.type === 'flag' ? [] : await suggested(option)
  return answer === 'files' ? answer : answer.map(({ word }) => ({ word: `${flag}=${word}` }))
}

function unusedOptions(spec: Spec, words: readonly string[]): Candidate[] {
  const options = Object.entries(spec.options).filter(
    ([, option]) => isMany(option) || !words.some((word) => optionCalled(spec, word) === option),
  )
  return [
    ...options.map(([key, { description }]) => ({ word: flagOf(key), about: description })),
    { word: '--help', about: 'explain this command' },
  ]
}

/** The words that are neither options nor their values. */
function positionalWords(spec: Spec, words: readonly string[]): string[] {
  return words.filter((word, i) => {
    const before = optionCalled(spec, words[i - 1] ?? '')
    return !word.startsWith('-') && (before === undefined || before.type === 'flag')
  })
}

async function suggested(from: Positional | Exclude<Option, { type: 'flag' }>): Promise<Answer> {
  const suggest: Suggest | undefined = from.suggest
  if (suggest === 'files') return 'files'
  const words = 'choices' in from ? (from.choices ?? []) : ((await suggest?.()) ?? [])
  return words.map((word) => ({ word }))
}

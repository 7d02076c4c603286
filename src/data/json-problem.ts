import { shortly } from './data-error.ts'

export interface JsonProblem {
  /** The column in characters, from 1. */
  readonly column: number
  readonly problem: string
}

/** Tokens of JSON. The expressions are sticky, so each looks only at one position. */
const SPACE = /[ \t\r\n]*/y
const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y
const WORD = /true|false|null/y
const ESCAPE = /\\(?:["\\/bfnrt]|u[\da-fA-F]{4})/y
/** Numbers that Python's json module writes but JSON does not have. */
const PYTHON_NUMBER = /NaN|-?Infinity/y

type Next = 'value' | 'value or ]' | 'key' | 'key or }' | 'end'

/**
 * Finds the position where a text stops being JSON, and what was expected there: `JSON.parse` often does not report the
 * position. Called only for texts that it rejected. Returns undefined if nothing is found.
 */
export function jsonProblem(text: string): JsonProblem | undefined {
  const closers: ('}' | ']')[] = []
  let at = 0
  let next = 'value' as Next
  const skip = (token: RegExp): boolean => {
    token.lastIndex = at
    const found = token.exec(text)?.[0] ?? ''
    at += found.length
    return found !== ''
  }
  const skipText = (): JsonProblem | undefined => {
    const end = endOfText(text, at)
    if (typeof end !== 'number') return end
    at = end
    return undefined
  }
  const step = (then: Next): undefined => {
    at++
    next = then
  }
  const close = (): undefined => {
    closers.pop()
    step('end')
  }
  const wrong = (expected: string): JsonProblem => ({
    column: at + 1,
    problem: `expected ${expected}, found ${foundAt(text, at)}`,
  })

  /** Reads one token; returns what is wrong with it. */
  const advance = (): JsonProblem | undefined => {
    const character = text[at]
    const closer = closers.at(-1)
    if (next === 'end') {
      if (closer === undefined) return wrong('the end of the line')
      if (character === closer) return close()
      if (character === ',') return step(closer === '}' ? 'key' : 'value')
      return wrong(`',' or '${closer}'`)
    }
    if (next === 'key' || next === 'key or }') {
      if (character === '}' && next === 'key or }') return close()
      if (character !== '"') return wrong(next === 'key' ? 'a key in double quotes' : "a key in double quotes or '}'")
      const problem = skipText()
      if (problem) return problem
      skip(SPACE)
      return text[at] === ':' ? step('value') : wrong("':'")
    }
    if (character === ']' && next === 'value or ]') return close()
    if (character === '{' || character === '[') {
      closers.push(character === '{' ? '}' : ']')
      return step(character === '{' ? 'key or }' : 'value or ]')
    }
    const expected = next === 'value' ? 'a value' : "a value or ']'"
    next = 'end'
    if (character === '"') return skipText()
    return skip(NUMBER) || skip(WORD) ? undefined : wrong(expected)
  }

  for (;;) {
    skip(SPACE)
    if (at >= text.length && next === 'end' && closers.length === 0) return undefined
    const problem = advance()
    if (problem) return problem
  }
}

/** The position after the closing quote of the text that starts at `from`, or what is wrong with it. */
function endOfText(text: string, from: number): number | JsonProblem {
  for (let at = from + 1; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code === 0x22) return at + 1
    if (code < 0x20) return { column: at + 1, problem: `${foundAt(text, at)} inside a text must be escaped` }
    if (code !== 0x5c) continue
    ESCAPE.lastIndex = at
    const length = ESCAPE.exec(text)?.[0].length
    if (length === undefined)
      return { column: at + 1, problem: `${shortly(text.slice(at, at + 2))} is not an escape sequence` }
    at += length - 1
  }
  return { column: text.length + 1, problem: `the text that starts at column ${from + 1} has no closing quote` }
}

function foundAt(text: string, at: number): string {
  if (at >= text.length) return 'the end of the line'
  PYTHON_NUMBER.lastIndex = at
  const python = PYTHON_NUMBER.exec(text)?.[0]
  if (python !== undefined) return `${python}, which is not valid in JSON (write null or a text)`
  return shortly(String.fromCodePoint(text.codePointAt(at)!))
}

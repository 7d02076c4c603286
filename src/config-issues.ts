import type * as z from 'zod/mini'
import { nearest } from './did-you-mean.ts'

/**
 * Describes what is wrong with a configuration: every wrong key, and what it may be. `given`: the configuration as its author
 * wrote it. `keysOf`: the keys that are allowed in a part of it.
 */
export const issuesText = (
  issues: readonly z.core.$ZodIssue[],
  given: unknown,
  keysOf: (part: string) => readonly string[],
): string => issues.map((issue) => issueText(issue, given, keysOf)).join('; ')

function issueText(issue: z.core.$ZodIssue, root: unknown, keysOf: (part: string) => readonly string[]): string {
  const key = issue.path.join('.')
  const value = issue.path.reduce<unknown>((inner, part) => (inner as Record<PropertyKey, unknown>)?.[part], root)
  const given = `it is ${isSecretAt(issue.path) ? article(value) : shownValue(value)}`
  switch (issue.code) {
    case 'unrecognized_keys':
      return unknownKeys(issue.keys, key, keysOf(key))
    case 'invalid_value':
      return `\`${key}\` must be one of ${issue.values.map((value) => `'${String(value)}'`).join(', ')}, ${given}`
    case 'too_small':
      if (issue.origin === 'array')
        return `\`${key}\` must have at least ${issue.minimum} ${issue.minimum === 1 ? 'element' : 'elements'}, it has ${(value as unknown[]).length || 'none'}`
      if (issue.origin === 'string' && issue.minimum === 1) return `\`${key}\` must not be empty`
      if (issue.origin === 'string') return `\`${key}\` must have at least ${issue.minimum} characters`
      return `\`${key}\` must be ${issue.inclusive ? 'at least' : 'more than'} ${issue.minimum}${unit(key)}, ${given}`
    case 'too_big':
      if (issue.origin === 'string') return `\`${key}\` must have at most ${issue.maximum} characters`
      return `\`${key}\` must be at most ${issue.maximum}${unit(key)}, ${given}`
    case 'invalid_type':
      return `\`${key}\` must be ${kinds[issue.expected] ?? `a ${issue.expected}`}, ${given}`
    case 'invalid_key':
      return `the name \`${key}\` ${issue.issues[0]?.message ?? issue.message}`
    case 'invalid_union':
      return `\`${key}\` ${issue.message}, ${given}${insideUnion(issue, root, keysOf)}`
    default:
      return `\`${key}\` ${issue.message}, ${given}`
  }
}

/** The mistakes inside an object that almost fits one alternative of a union: the one that has no mistake at the top level. */
function insideUnion(
  issue: z.core.$ZodIssueInvalidUnion,
  root: unknown,
  keysOf: (part: string) => readonly string[],
): string {
  const meant = issue.errors.find((inner) => inner.length > 0 && inner.every(isInside))
  const inside = meant?.map((inner) => issueText({ ...inner, path: [...issue.path, ...inner.path] }, root, keysOf))
  return inside === undefined ? '' : `: ${inside.join('; ')}`
}

const isInside = ({ code, path }: z.core.$ZodIssue) => code === 'unrecognized_keys' || path.length > 0

/** Values at these keys may be secrets, and are not shown. */
const isSecretAt = (path: readonly PropertyKey[]) =>
  // It should be the name of a variable, but may be the key itself by mistake.
  path.at(-1) === 'apiKeyEnv' || path.slice(0, -1).some((part) => part === 'redact' || part === 'headers')

const article = (value: unknown) => (value instanceof RegExp ? 'a regular expression' : `a ${typeof value}`)

/** zod's names for kinds of values, in words. */
const kinds: Record<string, string> = {
  int: 'a whole number',
  number: 'a finite number',
  boolean: 'true or false',
  record: 'an object of strings',
  object: 'an object',
  array: 'an array',
}

const unit = (key: string) => (key.endsWith('Ms') ? ' milliseconds' : '')

export function shownValue(value: unknown): string {
  if (typeof value === 'string') return `'${value}'`
  if (typeof value === 'object' && value !== null) return Array.isArray(value) ? 'an array' : 'an object'
  return typeof value === 'function' ? 'a function' : String(value)
}

function unknownKeys(unknown: readonly string[], part: string, allowed: readonly string[]): string {
  const said = unknown.map((key) => {
    const near = nearest(key, allowed)
    const path = part === '' ? key : `${part}.${key}`
    return `unknown key '${path}'${near === undefined ? '' : `, did you mean '${near}'?`}`
  })
  return `${said.join('; ')}${allowed.length === 0 ? '' : `; allowed: ${allowed.join(', ')}`}`
}

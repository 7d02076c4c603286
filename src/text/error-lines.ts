import { textLines, type ValueLayout } from './value-lines.ts'

interface ShownError {
  readonly code: string
  readonly name: string
  readonly message: string
  readonly stack?: string | undefined
}

/** An error and its stack. */
export function errorLines({ code, name, message, stack = '' }: ShownError, layout: ValueLayout): string[] {
  const { paint } = layout
  // Most stacks start with name and message, which are already shown.
  const frames = stack.slice(Math.max(0, stack.search(/^ +at /m)))
  const where = /^ +at /.test(frames) ? frames : ''
  return [
    paint('red', code),
    ...textLines(`${name}: ${message}`, layout).map((line) => paint('red', line)),
    ...(where === '' ? [] : textLines(where, layout).map((line) => paint('dim', line))),
  ]
}

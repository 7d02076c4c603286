const REFERENCE = /\$\{([^{}]{0,200})\}?/g
const WHOLE = /^\$\{[A-Za-z_]\w*\}$/

export interface Expanded {
  readonly text: string
  /** Variables that are unset or empty. */
  readonly missing: readonly string[]
  /** A malformed reference, such as `${}`. */
  readonly malformed: string | undefined
}

/** Expands environment variables, written as `${NAME}`. */
export function expandVariables(text: string, env: Readonly<Record<string, string | undefined>>): Expanded {
  const missing: string[] = []
  let malformed: string | undefined
  const expanded = text.replaceAll(REFERENCE, (reference: string, name: string) => {
    if (!WHOLE.test(reference)) malformed ??= reference
    const value = env[name]?.trim()
    if (!value) missing.push(name)
    return value ?? ''
  })
  return { text: expanded, missing, malformed }
}

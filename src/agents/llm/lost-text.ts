import type { Policy } from '../policy.ts'

const TOOL = 'tools.'

/** A text of the policy for a tool that the agent does not have: nobody would read it. Tools that are made for each task are not known here. */
export function lostText(policy: Policy | undefined, tools: unknown): string | undefined {
  const { texts } = (policy ?? {}) as { readonly texts?: Readonly<Record<string, string>> }
  if (texts === undefined || typeof tools === 'function') return undefined
  return Object.keys(texts).find(
    (name) => name.startsWith(TOOL) && !Object.hasOwn((tools ?? {}) as object, name.slice(TOOL.length)),
  )
}

import type { Policy } from '../policy.ts'

const TOOL = 'tools.'

/** Finds a text of the policy that describes a tool the agent does not have. Tools that are made per task are unknown here. */
export function textWithoutTool(policy: Policy | undefined, tools: unknown): string | undefined {
  const { texts } = (policy ?? {}) as { readonly texts?: Readonly<Record<string, string>> }
  if (texts === undefined || typeof tools === 'function') return undefined
  return Object.keys(texts).find(
    (name) => name.startsWith(TOOL) && !Object.hasOwn((tools ?? {}) as object, name.slice(TOOL.length)),
  )
}

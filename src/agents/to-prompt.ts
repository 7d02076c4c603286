import { ManyworldsError } from '../errors.ts'
import type { EnvironmentTask } from './environment.ts'
import { CALL_FORMS } from './parse-action.ts'
import type { Tools } from './tools.ts'

/** A task whose input is an instruction or has one. */
export type Instructed = Pick<EnvironmentTask<string | { readonly instruction: string }>, 'input' | 'tools'>

/**
 * Makes the prompt of a task: its instruction and the tools that it allows. With the tools of an environment, it includes
 * their descriptions and how to call them.
 *
 * @example
 * toPrompt({ input: 'Who wrote Emma?', tools: ['search'] })
 * // Instruction: Who wrote Emma?
 * // Available tools: search
 */
export function toPrompt(task: Instructed, tools?: Tools): string {
  const names = task.tools ?? (tools === undefined ? [] : Object.keys(tools))
  const lines = [`Instruction: ${instructionOf(task)}`, `Available tools: ${names.join(', ') || 'none'}`]
  if (tools === undefined) return lines.join('\n')
  for (const name of names) {
    const tool = Object.hasOwn(tools, name) ? tools[name] : undefined
    if (typeof tool === 'object') lines.push(`- ${name}: ${tool.description}`)
  }
  return [...lines, `To call a tool, write ${CALL_FORMS}`].join('\n')
}

function instructionOf({ input }: Instructed): string {
  const instruction: unknown = typeof input === 'object' && input !== null ? input.instruction : input
  if (typeof instruction === 'string') return instruction
  throw new ManyworldsError(
    'TASK_INVALID',
    `toPrompt: the input of a task must be a text or an object with an \`instruction\`, it is ${input === null ? 'null' : typeof input}`,
  )
}

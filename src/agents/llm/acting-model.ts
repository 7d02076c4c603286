import type { Context } from '../../agent.ts'
import type { ChatOptions } from '../../models/worker/chat.ts'
import type { PolicyVersion } from '../../trajectory/step.ts'
import { disposeWith } from '../dispose-with.ts'
import type { LlmAgentParams } from '../llm-agent.ts'
import type { OpenPolicy, Policy, PolicyHost } from '../policy.ts'
import type { LlmTools } from './recorded-tools.ts'

/** What acts for a model agent in this worker: a model of the run, and the version of a policy, if the agent has one. */
export interface ActingModel {
  /** Its name among the run's models. */
  readonly model: string
  readonly policy: PolicyVersion | undefined
  /** Of a policy that is the model; undefined: the model is not trained. */
  readonly trained: { readonly carries: boolean } | undefined
  readonly text: Readonly<Record<string, string>>
}

const INSTRUCTIONS = 'instructions'
const TOOL = 'tools.'
/** Seeds are whole numbers that every server takes. */
const SEEDS = 2 ** 31

/** Opens the version that the params name. What it throws fails the tasks of this worker. */
export async function openActing(
  agent: string,
  policy: Policy | undefined,
  { model, policy: ref }: LlmAgentParams,
  host: PolicyHost,
): Promise<ActingModel> {
  if (policy === undefined) return { model: model!, policy: undefined, trained: undefined, text: {} }
  if (ref?.policy !== policy.name)
    throw new Error(`params name the policy '${ref?.policy}', and agent '${agent}' has '${policy.name}'`)
  const open: OpenPolicy = await policy.open(ref, host)
  disposeWith(open, host.signal)
  const called = open.model?.()
  const name = called?.name ?? model
  if (name === null) throw new Error(`policy '${policy.name}' names no model, and agent '${agent}' has none`)
  return {
    model: name,
    policy: { name: policy.name, version: ref.version },
    trained: called && { carries: called.carries === true },
    text: open.text ?? {},
  }
}

/** How the calls of an episode are made. */
export function callOptions(acting: ActingModel, ctx: Context): Pick<ChatOptions, 'policy' | 'trained'> {
  const { policy, trained } = acting
  const random = trained && ctx.randomStream('policy')
  return { policy, ...(random && { trained: { ...trained, seed: () => Math.floor(random() * SEEDS) } }) }
}

/** The temperature of calls. What a trained model samples at must be known: the learner computes with it. */
export function temperatureOf({ trained }: ActingModel, { mode, temperature }: LlmAgentParams): number | undefined {
  if (mode === 'greedy') return 0
  return temperature ?? (trained ? 1 : undefined)
}

export const instructionsOf = ({ text }: ActingModel, { instructions }: LlmAgentParams): string | undefined =>
  text[INSTRUCTIONS] ?? instructions ?? undefined

/** The same tools, with the descriptions that the policy has for them. */
export function describedTools({ text }: ActingModel, tools: LlmTools): LlmTools {
  return Object.fromEntries(
    Object.entries(tools).map(([name, tool]) => {
      const description = text[TOOL + name]
      return [name, description === undefined ? tool : { ...tool, description }]
    }),
  )
}

import type { Context } from '../../agent.ts'
import type { ChatOptions } from '../../models/worker/chat.ts'
import type { PolicyVersion } from '../../trajectory/step.ts'
import { disposeWith } from '../dispose-with.ts'
import type { LlmAgentParams } from '../llm-agent.ts'
import type { OpenPolicy, Policy, PolicyHost } from '../policy.ts'
import type { LlmTools } from './recorded-tools.ts'

/** The model that a model agent calls in this worker, and the version of its policy, if it has one. */
export interface ActingModel {
  /** The name of the model among the run's models. */
  readonly model: string
  readonly policy: PolicyVersion | undefined
  /** Set if the policy is the model. Undefined: the model is not trained. */
  readonly trained: { readonly carries: boolean } | undefined
  readonly text: Readonly<Record<string, string>>
}

const INSTRUCTIONS = 'instructions'
const TOOL = 'tools.'
/** Seeds are whole numbers below this, which every server accepts. */
const SEEDS = 2 ** 31

/** Opens the policy version that the params name. If it throws, the tasks of this worker fail. */
export async function openActing(
  agent: string,
  policy: Policy | undefined,
  { model, policy: ref }: LlmAgentParams,
  host: PolicyHost,
): Promise<ActingModel> {
  if (policy === undefined) return { model: model!, policy: undefined, trained: undefined, text: {} }
  if (ref?.policy !== policy.name)
    throw new Error(`params name the policy '${ref?.policy}', but agent '${agent}' has '${policy.name}'`)
  const open: OpenPolicy = await policy.open(ref, host)
  disposeWith(open, host.signal)
  const called = open.model?.()
  const name = called?.name ?? model
  if (name === null) throw new Error(`neither policy '${policy.name}' nor agent '${agent}' names a model`)
  return {
    model: name,
    policy: { name: policy.name, version: ref.version },
    trained: called && { carries: called.carries === true },
    text: open.text ?? {},
  }
}

/** The options for the model calls of an episode. */
export function callOptions(acting: ActingModel, ctx: Context): Pick<ChatOptions, 'policy' | 'trained'> {
  const { policy, trained } = acting
  const random = trained && ctx.randomStream('policy')
  return { policy, ...(random && { trained: { ...trained, seed: () => Math.floor(random() * SEEDS) } }) }
}

/** The temperature of calls. For a trained model it must be known, because the learner computes with it. */
export function temperatureOf({ trained }: ActingModel, { mode, temperature }: LlmAgentParams): number | undefined {
  if (mode === 'greedy') return 0
  return temperature ?? (trained ? 1 : undefined)
}

export const instructionsOf = ({ text }: ActingModel, { instructions }: LlmAgentParams): string | undefined =>
  text[INSTRUCTIONS] ?? instructions ?? undefined

/** Returns the tools with the descriptions of the policy. */
export function describedTools({ text }: ActingModel, tools: LlmTools): LlmTools {
  return Object.fromEntries(
    Object.entries(tools).map(([name, tool]) => {
      const description = text[TOOL + name]
      return [name, description === undefined ? tool : { ...tool, description }]
    }),
  )
}

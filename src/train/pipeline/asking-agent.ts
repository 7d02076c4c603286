import { type Context, defineMadeAgent } from '../../agent.ts'
import { MODELS_USED } from '../../models/models-used.ts'
import type { Question } from '../learner.ts'

interface AskingParams {
  readonly model: string
}

/** The reply of a model. */
export interface AskedAnswer {
  readonly text: string
  readonly finish: string
}

const run = async (
  { prompt, temperature, maxTokens }: Omit<Question, 'model'>,
  ctx: Context<AskingParams>,
): Promise<AskedAnswer> => {
  const { text, finish } = await ctx.generate({
    ...{ model: ctx.params.model, prompt },
    ...(temperature !== undefined && { temperature }),
    ...(maxTokens !== undefined && { maxTokens }),
  })
  return { text, finish }
}
Object.assign(run, { [MODELS_USED]: ({ model }: AskingParams) => [model] })

/**
 * Asks a model one question for a learner. It is an ordinary agent, so the call is rate-limited, stored and shown like
 * any other.
 */
export const askingAgent = defineMadeAgent(
  { name: 'manyworlds.ask', params: { model: '' } as AskingParams, run, module: import.meta.url },
  [],
)

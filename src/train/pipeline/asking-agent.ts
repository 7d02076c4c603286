import { type Context, defineMadeAgent } from '../../agent.ts'
import { MODELS_USED } from '../../models/models-used.ts'
import type { Question } from '../learner.ts'

interface AskingParams {
  readonly model: string
}

/** What a model has answered. */
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

/** Asks a model one question for a learner: an ordinary agent, so that the call is limited, stored and shown like all others. */
export const askingAgent = defineMadeAgent(
  { name: 'manyworlds.ask', params: { model: '' } as AskingParams, run, module: import.meta.url },
  [],
)

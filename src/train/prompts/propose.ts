import { ManyworldsError } from '../../errors.ts'
import type { Batch } from '../learner.ts'
import type { PromptSettings } from './prompt-options.ts'
import { BLIND_WISHES, randomEdit } from './random-edits.ts'
import { blindPrompt, reflectionPrompt, textIn } from './reflection.ts'
import type { Texts } from './texts.ts'

interface ProposalRequest {
  readonly settings: PromptSettings
  readonly batch: Batch
  readonly texts: Texts
  readonly component: string
  readonly random: () => number
  /** If this call fails too, the training ends. */
  readonly isLastTry: boolean
}

export interface Proposal {
  /** Undefined if the answer was unusable. */
  readonly text: string | undefined
  readonly usd: number
  /** The call failed. */
  readonly failed: boolean
}

/** Proposes a new version of one text: from the results of episodes or, in a control experiment, without them. */
export async function propose({
  settings,
  batch,
  texts,
  component,
  random,
  isLastTry,
}: ProposalRequest): Promise<Proposal> {
  const { control, maxChars, temperature, maxOutputTokens } = settings
  const before = texts[component]!
  if (control === 'random') {
    const text = randomEdit(before, random)
    return { text: text === before || text.length > maxChars ? undefined : text, usd: 0, failed: false }
  }
  const model = settings.reflect!
  const reflection = { texts, component, groups: batch.groups ?? [], maxChars }
  const wish = BLIND_WISHES[Math.floor(random() * BLIND_WISHES.length)]!
  const { text, error, usage } = await batch.ask!({
    model,
    prompt: control === 'blind' ? blindPrompt(reflection, wish) : reflectionPrompt(reflection),
    ...(temperature !== undefined && { temperature }),
    ...(maxOutputTokens !== undefined && { maxTokens: maxOutputTokens }),
  })
  const usd = usage.costUsd ?? 0
  if (text === null) {
    if (isLastTry)
      throw new ManyworldsError(
        'TRAINING_FAILED',
        `the model '${model}' that rewrites texts failed several times in a row; the last error is: ${error}`,
      )
    return { text: undefined, usd, failed: true }
  }
  const found = textIn(text, { before, maxChars })
  return { text: 'text' in found ? found.text : undefined, usd, failed: false }
}

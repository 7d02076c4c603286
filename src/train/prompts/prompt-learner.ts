import { hash } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import { ManyworldsError } from '../../errors.ts'
import type { Outcome } from '../../grade/outcome.ts'
import { randomFrom } from '../../random.ts'
import type { Batch, Learner, LearnerStart, LearnerTraining, Metrics, Published, Want } from '../learner.ts'
import { spend, whyNoMore } from './budget.ts'
import { isBetterOn, meanRewards, scoresOf } from './compare.ts'
import { feedbackOf } from './example-text.ts'
import { minibatch } from './minibatch.ts'
import { frontWeights, pickByWeight } from './pareto.ts'
import { checkTraining, storedPrompts } from './prepare.ts'
import { checkedPromptOptions, type PromptLearnerOptions } from './prompt-options.ts'
import { type Candidate, firstState, type PromptState, packState, unpackState, type Validated } from './prompt-state.ts'
import { propose } from './propose.ts'
import { isTextPolicy, type TextPolicy } from './text-policy.ts'
import { packTexts } from './texts.ts'

/** A learner of texts. It runs in the driver, and selects its own training data. */
export interface PromptLearner extends Learner {
  want(): Want
}

/**
 * Improves the texts of a `textPolicy()`, for models whose weights cannot be trained: reflective prompt evolution, after GEPA. Each iteration, an epoch of
 * the training, selects a good candidate, runs it on a few tasks, and has a model rewrite one of its texts from what happened and from the graders'
 * feedback. If the new text does better on the same tasks with the same seeds, it is validated and becomes a candidate.
 *
 * @example
 * const agent = llmAgent({ name: 'solver', model: 'small', policy: textPolicy({ texts: { instructions } }), grade })
 * const learner = promptLearner({ reflect: 'large', budget: { evaluations: 300, usd: 5 } })
 * const pipeline = new DistributedTrainingPipeline({ agent, tasks, models, learner })
 */
export function promptLearner(options: PromptLearnerOptions): PromptLearner {
  const settings = checkedPromptOptions(options)
  let training: LearnerTraining | undefined
  let seed: number | string = 0
  let state: PromptState | undefined
  const now = () => {
    if (state === undefined || training === undefined)
      throw new ManyworldsError(
        'LEARNER_INVALID',
        'the prompt learner was not started; use it as `learner` of a DistributedTrainingPipeline',
      )
    return { state, training }
  }

  const random = (stream: string, visit: number) =>
    randomFrom({ seed, purpose: 'prompts', stream, task: '', visit, rollout: 1 })

  /** Selects the parent of this iteration. */
  const parentOf = ({ pool, iteration }: PromptState, validation: readonly string[]): Validated => {
    const scores = pool.map((one) => validation.map((task) => one.scores[task] ?? null))
    return pool[pickByWeight(frontWeights(scores), random('parent', iteration)())]!
  }

  const published = (): Published => {
    const { version, texts } = now().state.current
    const bytes = packTexts(texts)
    const sha256 = hash('sha256', bytes)
    return { ref: { policy: now().training.policy.name, version, digest: sha256, at: { blob: sha256 } }, bytes }
  }

  /** The parent was tried: makes a child of it, unless there is nothing to learn. */
  async function reflect(batch: Batch, before: PromptState): Promise<PromptState> {
    const { groups = [], update = 0 } = batch
    const parent = before.pool.find(({ version }) => version === groups[0]?.ref.version)!
    const rewards = meanRewards(groups)
    const next = { ...before, iteration: before.iteration + 1 }
    const known = Object.values(rewards).filter((reward) => reward !== null)
    if (known.length === 0 || known.every((reward) => reward >= settings.perfect))
      return { ...next, counts: { ...before.counts, skipped: before.counts.skipped + 1 } }
    const { saidBlind } = noticeMissingFeedback(groups, before)
    const components = settings.components ?? Object.keys(parent.texts)
    const component = components[parent.next % components.length]!
    const { text, usd, failed } = await propose({
      ...{ settings, batch, texts: parent.texts, component, random: random('edit', before.iteration) },
      isLastTry: before.failedInARow >= MAX_FAILED - 1,
    })
    const pool = before.pool.map((one) => (one === parent ? { ...one, next: one.next + 1 } : one))
    const spent = { ...before.spent, usd: before.spent.usd + usd, askUsd: Math.max(before.spent.askUsd, usd) }
    const after = { ...before, pool, spent, saidBlind, failedInARow: failed ? before.failedInARow + 1 : 0 }
    const { counts } = before
    const texts = text === undefined ? undefined : { ...parent.texts, [component]: text }
    // Texts that are already a candidate were already evaluated.
    if (texts === undefined || before.pool.some((one) => isDeepStrictEqual(one.texts, texts)))
      return { ...after, iteration: next.iteration, counts: { ...counts, unusable: counts.unusable + 1 } }
    const child: Candidate = {
      ...{ version: before.current.version + 1, texts },
      ...{ parent: parent.version, next: parent.next + 1 },
    }
    const trial = { child, update, tasks: groups.map(({ id }) => id), rewards }
    return { ...after, current: child, trial, counts: { ...counts, proposed: counts.proposed + 1 } }
  }

  function noticeMissingFeedback(
    groups: NonNullable<Batch['groups']>,
    { saidBlind }: PromptState,
  ): { readonly saidBlind: boolean } {
    const hasFeedback = groups.some(({ members }) => members.some((member) => feedbackOf(member) !== undefined))
    if (saidBlind || hasFeedback || settings.control !== undefined) return { saidBlind }
    now().training.notice(
      'no grader returned `feedback`, so the model that rewrites texts sees only answers and rewards, and must guess what was wrong',
    )
    return { saidBlind: true }
  }

  /** The child was tried on the same tasks. */
  function compare({ groups = [] }: Batch, before: PromptState): PromptState {
    const { child, rewards } = before.trial!
    const after = { ...before, trial: null, iteration: before.iteration + 1 }
    if (!isBetterOn(rewards, meanRewards(groups))) return after
    return { ...after, pending: child, counts: { ...before.counts, accepted: before.counts.accepted + 1 } }
  }

  return {
    prepare(about) {
      checkTraining(settings, about)
      return storedPrompts(settings, about.policy as TextPolicy)
    },

    async start({ seed: given, state: before, training: about }: LearnerStart) {
      if (about === undefined || !isTextPolicy(about.policy))
        throw new ManyworldsError('LEARNER_INVALID', 'a prompt learner can only train a textPolicy()')
      training = about
      seed = given
      state = before ? unpackState(before) : firstState(about.policy.texts)
      return published()
    },

    want() {
      const { state, training } = now()
      const { pending, trial, iteration } = state
      if (pending) return { kind: 'validate', version: pending.version }
      const { budget } = settings
      const left = Math.max(0, (budget.evaluations ?? Number.POSITIVE_INFINITY) - state.spent.evaluations)
      const common = { kind: 'collect', epoch: iteration, ...(Number.isFinite(left) && { left }) } as const
      if (trial) return { ...common, version: trial.child.version, tasks: trial.tasks, seedOf: trial.update }
      const why = whyNoMore(state, settings, training)
      if (why !== undefined) return { kind: 'finished', why }
      const tasks = minibatch(training.train, settings.minibatch, iteration, seed)
      return { ...common, version: parentOf(state, training.validation).version, tasks }
    },

    validated({ version, outcomes }) {
      const { state: before, training } = now()
      const { pending } = before
      if (pending?.version !== version) return
      const scores = scoresOf(outcomes, training.validation)
      if (version === 0) refuseUngraded(outcomes, scores)
      const spent = spend(before.spent, outcomes)
      const pool = [...before.pool, { ...pending, scores }]
      state = { ...before, pool, pending: null, spent }
    },

    async update(batch): Promise<Metrics> {
      const { state: before } = now()
      const members = (batch.groups ?? []).flatMap((group) => group.members)
      if (members.length === 0) return {}
      const counted = { ...before, spent: spend(before.spent, members) }
      state = before.trial ? compare(batch, counted) : await reflect(batch, counted)
      const { spent, counts, pool, pending } = state
      const { evaluations, usd } = spent
      return { evaluations, usd, ...counts, candidates: pool.length + (pending ? 1 : 0) }
    },

    publish: async () => published(),
    retire: async () => {},
    save: async () => packState(now().state),
    load: async (bytes) => {
      state = unpackState(bytes)
    },
  }
}

/** How many reflections in a row may fail before the training ends. */
const MAX_FAILED = 3

/** Ends the training if no validation task has a reward. */
function refuseUngraded(outcomes: readonly Outcome[], scores: Readonly<Record<string, number | null>>): void {
  if (Object.values(scores).some((score) => score !== null)) return
  const code = outcomes.find((outcome) => outcome.code !== undefined)?.code
  const graded = outcomes.find(({ grade }) => grade?.error !== undefined)?.grade?.error
  const why =
    code !== undefined
      ? `the first error is ${code}`
      : graded !== undefined
        ? `the grader failed with ${graded.code}: ${graded.message}`
        : 'give the agent a grader (`grade`), preferably with `feedback`'
  throw new ManyworldsError(
    'TRAINING_FAILED',
    `no validation task has a reward with the initial texts: ${why}. Fix this, then start a new training`,
  )
}

import type { OpenPolicy, Policy } from '../../agents/policy.ts'
import { ManyworldsError } from '../../errors.ts'
import { checkKeys } from '../check-keys.ts'
import { blobOf } from '../choose.ts'
import { checkTexts, type Texts, unpackTexts } from './texts.ts'

export interface TextPolicyOptions {
  /** Default `'texts'`. */
  readonly name?: string
  /** What a model is told: `instructions`, and `tools.NAME` for the description of a tool. They replace those of the agent. */
  readonly texts: Texts
}

/** A version of a set of texts. */
export interface OpenTextPolicy extends OpenPolicy {
  readonly text: Texts
}

/** A policy that is a set of texts, which a `promptLearner()` rewrites. */
export interface TextPolicy extends Policy {
  readonly core: 'texts'
  /** Those that a training begins with. */
  readonly texts: Texts
  /** Opens a version by its bytes; null: the first one. */
  openBytes(bytes: Uint8Array | null): OpenTextPolicy
}

/**
 * A policy of a model that nobody can train by its weights: what is learned is what the model is told. It is the `policy` of an
 * `llmAgent`, and a `promptLearner()` makes it better.
 *
 * @example
 * const policy = textPolicy({ texts: { instructions: 'Answer with one number.', 'tools.lookup': 'Finds a fact.' } })
 * const solver = llmAgent({ name: 'solver', model: 'small', policy, tools: { lookup } })
 */
export function textPolicy(options: TextPolicyOptions): TextPolicy {
  if (typeof options !== 'object' || options === null)
    throw new ManyworldsError('POLICY_INVALID', "textPolicy: give one object: { texts: { instructions: '…' } }")
  checkKeys(options, ['name', 'texts'], 'textPolicy()')
  const { name = 'texts', texts } = options
  if (typeof name !== 'string' || name === '')
    throw new ManyworldsError('POLICY_INVALID', 'textPolicy: `name` must be a non-empty string')
  checkTexts(texts)
  const first: OpenTextPolicy = { text: { ...texts } }
  const openBytes = (bytes: Uint8Array | null): OpenTextPolicy => (bytes === null ? first : opened(name, bytes))
  return {
    ...{ core: 'texts', name, texts: first.text, openBytes },
    async open(ref, host) {
      const sha256 = blobOf(ref, 'text')
      return openBytes(sha256 === null ? null : await host.blob(sha256))
    },
  }
}

export const isTextPolicy = (policy: Policy): policy is TextPolicy => (policy as Partial<TextPolicy>).core === 'texts'

function opened(name: string, bytes: Uint8Array): OpenTextPolicy {
  const text = unpackTexts(bytes)
  if (text === undefined)
    throw new ManyworldsError('POLICY_INVALID', `the bytes of policy '${name}' are not texts of textPolicy()`)
  return { text }
}

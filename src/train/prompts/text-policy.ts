import type { OpenPolicy, Policy } from '../../agents/policy.ts'
import { ManyworldsError } from '../../errors.ts'
import { checkKeys } from '../check-keys.ts'
import { blobOf } from '../choose.ts'
import { checkTexts, type Texts, unpackTexts } from './texts.ts'

export interface TextPolicyOptions {
  /** Default `'texts'`. */
  readonly name?: string
  /**
   * The texts given to a model: `instructions`, and `tools.NAME` for the description of a tool. They replace those of
   * the agent.
   */
  readonly texts: Texts
}

/** An opened version of a set of texts. */
export interface OpenTextPolicy extends OpenPolicy {
  readonly text: Texts
}

/** A policy that consists of texts, which a `promptLearner()` rewrites. */
export interface TextPolicy extends Policy {
  readonly core: 'texts'
  /** The initial texts of a training. */
  readonly texts: Texts
  /** Opens a version by its bytes; null: the first one. */
  openBytes(bytes: Uint8Array | null): OpenTextPolicy
}

/**
 * A policy for a model whose weights cannot be trained: instead, the texts given to the model are improved. Use it as the `policy` of an `llmAgent`, and
 * train it with a `promptLearner()`.
 *
 * @example
 * const policy = textPolicy({ texts: { instructions: 'Answer with one number.', 'tools.lookup': 'Finds a fact.' } })
 * const solver = llmAgent({ name: 'solver', model: 'small', policy, tools: { lookup } })
 */
export function textPolicy(options: TextPolicyOptions): TextPolicy {
  if (typeof options !== 'object' || options === null)
    throw new ManyworldsError(
      'POLICY_INVALID',
      "textPolicy: options must be an object such as { texts: { instructions: '…' } }",
    )
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
    throw new ManyworldsError('POLICY_INVALID', `the bytes of policy '${name}' are not the texts of a textPolicy()`)
  return { text }
}

import { ManyworldsError } from '../errors.ts'
import { neuralPolicy } from './neural/neural-policy.ts'
import type { NeuralOptions } from './neural/settings.ts'
import { settingsOf as neuralSettingsOf } from './neural/weights.ts'
import type { TrainedPolicy } from './policy-folder.ts'
import { textPolicy } from './prompts/text-policy.ts'
import { unpackTexts } from './prompts/texts.ts'
import { softmaxPolicy } from './softmax/softmax-policy.ts'
import { settingsOf as softmaxSettingsOf } from './softmax/weights.ts'

/** Makes a policy from the header of its weights; undefined if they are of another kind. */
type Kind = (name: string, bytes: Uint8Array) => TrainedPolicy | undefined

const softmax: Kind = (name, bytes) => {
  const settings = softmaxSettingsOf(bytes)
  if (settings === undefined) return undefined
  const { bits, temperature, features, hasValue: value } = settings
  return softmaxPolicy({ name, bits, temperature, value, ...(features === 'own' && { features: () => missing(name) }) })
}

const neural: Kind = (name, bytes) => {
  const settings = neuralSettingsOf(bytes)
  if (settings === undefined) return undefined
  const { inputs, actions, candidate, hidden, hasValue: value } = settings
  const { kind, size } = inputs
  const options: NeuralOptions = {
    ...{ name, hidden, value },
    inputs: kind === 'numbers' ? size : kind === 'oneHot' ? { oneHot: size } : { size, of: () => missing(name) },
    ...(actions ? { actions } : { candidates: { size: candidate, of: () => missing(name) } }),
  }
  return neuralPolicy(options)
}

const texts: Kind = (name, bytes) => {
  const found = unpackTexts(bytes)
  return found && textPolicy({ name, texts: found })
}

const KINDS: Readonly<Record<TrainedPolicy['core'], Kind>> = { softmax, neural, texts }

/**
 * Recreates a policy from its weights alone: their header has everything except the code of custom functions, which
 * throw when called. So the policy can always be saved, but not always act.
 */
export function policyOfWeights(name: string, bytes: Uint8Array): TrainedPolicy {
  try {
    for (const kind of Object.values(KINDS)) {
      const policy = kind(name, bytes)
      if (policy) return policy
    }
  } catch (cause) {
    if (ManyworldsError.is(cause)) throw cause
    throw invalid(name, `they are damaged: ${(cause as Error).message}`, cause)
  }
  const kinds = Object.keys(KINDS).join(', ')
  throw invalid(
    name,
    `they are of none of the kinds that this version of manyworlds knows (${kinds}); save the policy from its own program`,
  )
}

const invalid = (name: string, why: string, cause?: unknown) =>
  new ManyworldsError('POLICY_INVALID', `cannot read the weights of policy '${name}': ${why}`, { cause })

function missing(name: string): never {
  throw new ManyworldsError('POLICY_INVALID', `policy '${name}' has custom functions, whose code is not available here`)
}

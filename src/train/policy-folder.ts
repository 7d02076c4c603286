import { hash } from 'node:crypto'
import { mkdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import * as z from 'zod/mini'
import type { Choice, PolicyMode } from '../agents/policy.ts'
import { ManyworldsError } from '../errors.ts'
import { wordsOf } from '../text/thrown.ts'
import { type NeuralPolicy, neuralPolicy } from './neural/neural-policy.ts'
import { writeReadable } from './prompts/text-files.ts'
import { type TextPolicy, textPolicy } from './prompts/text-policy.ts'
import type { Texts } from './prompts/texts.ts'
import { type SoftmaxPolicy, softmaxPolicy } from './softmax/softmax-policy.ts'
import { writeWhole } from './write-whole.ts'

const DESCRIPTION = 'policy.json'

const common = {
  kind: z.literal('manyworlds.policy'),
  format: z.literal(1),
  name: z.string().check(z.minLength(1)),
  version: z.int().check(z.minimum(0)),
  weights: z.strictObject({
    file: z.string().check(z.regex(/^[0-9a-f]{64}\.weights$/)),
    sha256: z.string(),
    bytes: z.int(),
  }),
}

const shape = z.discriminatedUnion('core', [
  z.strictObject({
    ...common,
    core: z.literal('softmax'),
    settings: z.strictObject({
      bits: z.int(),
      temperature: z.number(),
      features: z.string(),
      hasValue: z.boolean(),
    }),
  }),
  z.strictObject({
    ...common,
    core: z.literal('neural'),
    settings: z.strictObject({
      inputs: z.strictObject({ kind: z.enum(['numbers', 'oneHot', 'own']), size: z.int() }),
      actions: z.nullable(z.array(z.unknown())),
      candidate: z.int(),
      hidden: z.array(z.int()),
      hasValue: z.boolean(),
    }),
  }),
  z.strictObject({ ...common, core: z.literal('texts') }),
])

/** A policy whose versions are stored as bytes. */
export type TrainedPolicy<Observation = unknown, Action = unknown> =
  | SoftmaxPolicy<Observation, Action>
  | NeuralPolicy<Observation, Action>
  | TextPolicy

/** A version of a policy, for use in your own program. */
export interface ServedPolicy<Observation = unknown, Action = unknown> {
  readonly name: string
  readonly version: number
  /** For a `textPolicy()`: the texts, by name. */
  readonly text?: Texts
  /**
   * Chooses synchronously. A text policy chooses nothing: its `act` throws. The default mode is `'greedy'`; `'sample'`
   * uses `random`, by default `Math.random`.
   */
  act(question: {
    readonly observation: Observation
    /** Default: all `actions` of a neural policy that lists them. */
    readonly candidates?: readonly Action[]
    readonly mode?: PolicyMode
    readonly random?: () => number
  }): Choice<Action>
}

/**
 * Writes a version of a policy to a folder: its weights, and a JSON description, which is written last and replaces the
 * old one atomically. A concurrent reader gets either the old version or this one.
 */
export async function savePolicy<Observation, Action>(
  folder: string,
  policy: TrainedPolicy<Observation, Action>,
  { version, bytes }: { readonly version: number; readonly bytes: Uint8Array },
): Promise<void> {
  // Refuse bytes that are not weights of this policy now, while the right ones can still be found.
  policy.openBytes(bytes)
  const sha256 = hash('sha256', bytes)
  const file = `${sha256}.weights`
  const { core, name } = policy
  const weights = { file, sha256, bytes: bytes.length }
  const settings = policy.core === 'texts' ? {} : { settings: policy.settings }
  const description = { kind: 'manyworlds.policy', format: 1, core, name, version, ...settings, weights }
  await mkdir(folder, { recursive: true }).catch((error) => refuse(folder, error))
  const before = await describe(folder).catch(() => undefined)
  try {
    await writeWhole(join(folder, file), bytes)
    if (policy.core === 'texts') await writeReadable(folder, policy.openBytes(bytes).text, writeWhole)
    await writeWhole(join(folder, DESCRIPTION), `${JSON.stringify(description, null, 2)}\n`)
  } catch (error) {
    refuse(folder, error)
  }
  if (before !== undefined && before.weights.file !== file) await rm(join(folder, before.weights.file), { force: true })
}

/**
 * Opens what `savePolicy` wrote, without workers or a store. Pass `policy` if the policy has custom functions.
 *
 * @example
 * const policy = await loadPolicy('best')
 * const { action } = policy.act({ observation: 'a red light', candidates: ['go', 'stop'] })
 */
export async function loadPolicy<Observation = unknown, Action = unknown>(
  folder: string,
  { policy }: { readonly policy?: TrainedPolicy<Observation, Action> } = {},
): Promise<ServedPolicy<Observation, Action>> {
  const description = await describe(folder)
  const { core, name, version } = description
  if (policy !== undefined && policy.core !== core)
    throw new ManyworldsError(
      'POLICY_INVALID',
      `policy '${name}' in ${folder} is of kind '${core}', but \`policy\` is of kind '${policy.core}'`,
    )
  const code = policy ?? policyOf<Observation, Action>(description, folder)
  const bytes = await readWeights(folder, description.weights)
  if (code.core === 'texts') return { name, version, text: code.openBytes(bytes).text, act: () => refuseToAct(name) }
  const { act } = code.openBytes(bytes)
  const all = code.core === 'neural' ? code.options.actions : undefined
  return {
    name,
    version,
    act: ({ observation, candidates = all, mode = 'greedy', random = Math.random }) =>
      act({ observation, candidates, mode, random }),
  }
}

/** Recreates the policy from its settings, if it has no custom functions. */
function policyOf<Observation, Action>(
  description: z.infer<typeof shape>,
  folder: string,
): TrainedPolicy<Observation, Action> {
  const { core, name } = description
  const needsCode = (what: string) => {
    throw new ManyworldsError(
      'POLICY_INVALID',
      `policy '${name}' in ${folder} has custom ${what}, whose code is not in the folder; pass the policy: loadPolicy(folder, { policy })`,
    )
  }
  // A placeholder: the texts are read from the folder.
  if (core === 'texts') return textPolicy({ name, texts: { instructions: '-' } })
  if (core === 'softmax') {
    const { bits, temperature, features, hasValue: value } = description.settings
    if (features === 'own') needsCode('features')
    return softmaxPolicy({ name, bits, temperature, value })
  }
  const { inputs, actions, hidden, hasValue: value } = description.settings
  if (inputs.kind === 'own') needsCode('inputs')
  if (actions === null) needsCode('candidates')
  return neuralPolicy({
    ...{ name, hidden, value, actions: actions as Action[] },
    inputs: inputs.kind === 'oneHot' ? { oneHot: inputs.size } : inputs.size,
  })
}

function refuseToAct(name: string): never {
  throw new ManyworldsError(
    'POLICY_INVALID',
    `policy '${name}' consists of texts and cannot choose actions; use its \`text\``,
  )
}

async function describe(folder: string): Promise<z.infer<typeof shape>> {
  const path = join(folder, DESCRIPTION)
  try {
    const described: unknown = JSON.parse(await readFile(path, 'utf8'))
    if ((described as { core?: unknown } | null)?.core === 'lora') throw isAdapter(folder)
    return shape.parse(described)
  } catch (error) {
    if (ManyworldsError.is(error)) throw error
    const why = error instanceof z.core.$ZodError ? z.prettifyError(error) : wordsOf(error).message
    throw new ManyworldsError('POLICY_INVALID', `${path} is not a policy description: ${why}`, { cause: error })
  }
}

/** A language model cannot run in this process. */
const isAdapter = (folder: string) =>
  new ManyworldsError(
    'POLICY_INVALID',
    `${folder} contains a LoRA adapter of a language model; serve it, for example with vLLM (--enable-lora --lora-modules NAME=${folder}), and call that server, or load it in Python with PEFT`,
  )

async function readWeights(folder: string, { file, sha256 }: { file: string; sha256: string }): Promise<Uint8Array> {
  const path = join(folder, file)
  let bytes: Uint8Array
  try {
    bytes = await readFile(path)
  } catch (error) {
    throw new ManyworldsError('POLICY_INVALID', `cannot read the weights of the policy: ${wordsOf(error).message}`, {
      cause: error,
    })
  }
  if (hash('sha256', bytes) !== sha256)
    throw new ManyworldsError('POLICY_INVALID', `${path} is damaged: its SHA-256 does not match ${DESCRIPTION}`)
  return bytes
}

function refuse(path: string, error: unknown): never {
  throw new ManyworldsError('EXPORT_FAILED', `cannot write ${path}: ${wordsOf(error).message}`, { cause: error })
}

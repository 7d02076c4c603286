import { CONTENTS } from './content.ts'
import { FAULTS, type Fault, faultOf } from './faults.ts'

/**
 * Where token ids are: nowhere; in `token_ids` and `prompt_token_ids` if asked for, which chat answers of vLLM and SGLang have in
 * different places; in the log-probabilities.
 */
const DIALECTS = ['openai', 'vllm', 'sglang', 'llama'] as const
export type Dialect = (typeof DIALECTS)[number]

/** What the server does with a request. */
export interface Scenario {
  readonly content: { readonly name: string; readonly arg: string | undefined }
  readonly fault: Fault | undefined
  readonly dialect: Dialect
  readonly usage: 'plain' | 'cached' | 'none'
  readonly latencyMs: number
  /** Between two pieces of the answer. */
  readonly dripMs: number
}

export type Defaults = Pick<Scenario, 'dialect' | 'latencyMs'>

const isDialect = (name: string): name is Dialect => (DIALECTS as readonly string[]).includes(name)

/**
 * Reads `500:2+tools:3+usage:none`: terms in any order, each with a name and arguments. Faults come first, one after the other, for as
 * many requests with the same body as each says; then the content. `nth`: which of those requests this is, from 0.
 */
export function readScenario(text: string, nth: number, defaults: Defaults): Scenario {
  let scenario: Scenario = {
    content: { name: 'text', arg: undefined },
    fault: undefined,
    usage: 'plain',
    dripMs: 0,
    ...defaults,
  }
  let left = nth
  for (const term of text.split('+')) {
    const [name = '', arg, detail] = term.split(':')
    if (FAULTS.has(name)) {
      if (scenario.fault !== undefined) continue
      const { fault, times } = faultOf(name, arg, detail, left)
      left -= times
      scenario = { ...scenario, fault }
    } else if (Object.hasOwn(CONTENTS, name)) scenario = { ...scenario, content: { name, arg } }
    else if (isDialect(name)) scenario = { ...scenario, dialect: name }
    else if (name === 'usage' && (arg === 'none' || arg === 'cached')) scenario = { ...scenario, usage: arg }
    else if (name === 'latency') scenario = { ...scenario, latencyMs: Number(arg) }
    else if (name === 'drip') scenario = { ...scenario, dripMs: Number(arg ?? 20) }
    else
      throw new Error(`the scripted server does not know ${JSON.stringify(term)} of the model ${JSON.stringify(text)}`)
  }
  return scenario
}

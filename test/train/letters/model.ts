/**
 * A language model of 32 tokens for tests: a softmax whose logits depend on the token before and on the last letter that was seen. It is small
 * enough to be learned in seconds, and has all that training needs: ids, log-probabilities, calls of tools, versions.
 */
export const LETTERS = 'abcdef'
const [NOTHING, END, USER, ASSISTANT, TOOL, CALL] = [0, 1, 2, 3, 4, 5]
const FIRST_LETTER = 8
export const VOCABULARY = 32
export const WEIGHTS = 2 * VOCABULARY * VOCABULARY
export const END_OF_TURN = END

export interface ChatMessage {
  readonly role: string
  readonly content?: unknown
  readonly tool_calls?: readonly unknown[]
}

/** Other characters are one token: nothing depends on them. */
const idOf = (character: string): number => {
  const at = LETTERS.indexOf(character)
  return at === -1 ? NOTHING! : FIRST_LETTER + at
}

/** `drifts`: calls of tools come back as other tokens than those that were sampled. */
export function render(messages: readonly ChatMessage[], drifts = false): number[] {
  const ids: number[] = []
  for (const { role, content, tool_calls: calls } of messages) {
    ids.push(role === 'assistant' ? ASSISTANT! : role === 'tool' ? TOOL! : USER!)
    if (calls && calls.length > 0) ids.push(CALL!, ...(drifts ? [NOTHING!] : []))
    for (const character of typeof content === 'string' ? content.slice(0, 1000) : '') ids.push(idOf(character))
    if (role === 'assistant') ids.push(END!)
  }
  return [...ids, ASSISTANT!]
}

export function read(ids: readonly number[]): { readonly text: string; readonly calls: boolean } {
  const text = ids.map((id) => (id >= FIRST_LETTER ? (LETTERS[id - FIRST_LETTER] ?? '.') : '')).join('')
  return { text, calls: ids[0] === CALL }
}

/** Of the token at a place, by those before it. */
export function logProbsAt(
  weights: Float64Array,
  ids: ArrayLike<number>,
  place: number,
  temperature: number,
): Float64Array {
  const [previous, letter] = featuresAt(ids, place)
  const logits = Float64Array.from({ length: VOCABULARY }, (_, id) => {
    const own = weights[previous * VOCABULARY + id]! + weights[(VOCABULARY + letter) * VOCABULARY + id]!
    return own / temperature
  })
  const most = Math.max(...logits)
  const sum = Math.log(logits.reduce((total, logit) => total + Math.exp(logit - most), 0)) + most
  return logits.map((logit) => logit - sum)
}

export function featuresAt(ids: ArrayLike<number>, place: number): readonly [number, number] {
  let letter = NOTHING!
  for (let at = place - 1; at >= 0; at--)
    if (ids[at]! >= FIRST_LETTER) {
      letter = ids[at]!
      break
    }
  return [ids[place - 1] ?? NOTHING!, letter]
}

/** At first it knows that an answer has one letter, or is a call, and then ends: what is left is to learn which. */
export function firstWeights(): Float64Array {
  const weights = new Float64Array(WEIGHTS)
  const set = (previous: number, id: number, logit: number) => {
    weights[previous * VOCABULARY + id] = logit
  }
  for (let id = 0; id < LETTERS.length; id++) {
    set(ASSISTANT!, FIRST_LETTER + id, 6)
    set(FIRST_LETTER + id, END!, 12)
  }
  set(ASSISTANT!, CALL!, 6)
  set(CALL!, END!, 12)
  return weights
}

/** Sentences that can be added without knowing the tasks. */
const SENTENCES = [
  'Think step by step before you answer.',
  'Be brief.',
  'Be thorough, and leave nothing out.',
  'You are an expert in this field.',
  'Read the task twice before you begin.',
  'Check your answer before you give it.',
  'Answer with the result alone.',
  'Explain how you came to your answer.',
  'Take a deep breath and work carefully.',
  'If something is not clear, choose the most likely meaning.',
  'Follow the wording of the task exactly.',
  'Never guess.',
  'This is very important.',
  'Write in simple words.',
  'First say what is asked for, then answer.',
  'Use the format that the task suggests.',
]

/** Instructions for a model that rewrites a text blindly, so that its proposals differ. */
export const BLIND_WISHES = [
  'say it in other words.',
  'make it more precise.',
  'make it shorter.',
  'make it more detailed.',
  'give it a clearer structure.',
  'write it as an expert in this field would.',
]

/** Adds, replaces or removes a sentence: the edits of the control experiment. */
export function randomEdit(text: string, random: () => number): string {
  const pick = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)]!
  const sentences = text.split(/(?<=[.!?])\s+/).filter(Boolean)
  const fresh = SENTENCES.filter((sentence) => !text.includes(sentence))
  const sentence = pick(fresh.length > 0 ? fresh : SENTENCES)
  const index = Math.floor(random() * sentences.length)
  const kind = random()
  if (kind < 0.25 && sentences.length > 1) return sentences.toSpliced(index, 1).join(' ')
  if (kind < 0.5) return sentences.toSpliced(index, 1, sentence).join(' ')
  return random() < 0.5 ? `${sentence} ${text}` : `${text} ${sentence}`
}

import { defineAgent } from '../../dist/index.js'

/** Some questions have no answer. */
export const answer = defineAgent({
  name: 'answer',
  run: async (question: string) => {
    if (question.startsWith('unanswerable')) throw new Error(`what a question: ${question}`)
    return question.toUpperCase()
  },
})

/** What arrives in a worker, it sends back. */
export const echo = defineAgent({ name: 'echo', run: async (input: unknown) => input })

/** An answer that has a shape. */
export const grade = defineAgent({
  name: 'grade',
  run: async ({ text, least }: { text: string; least: number }) => ({
    score: text.length / 2,
    tags: [...text].filter((letter) => letter > 'm'),
    passed: text.length >= least,
  }),
})

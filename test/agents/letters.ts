import { tool } from 'ai'
import { llmAgent } from 'manyworlds/agents'
import { lora, vllm } from 'manyworlds/train'
import * as z from 'zod'
import { lettersCore } from '../train/letters/core.ts'

/** Where versions are served: for the driver alone. */
const { LETTERS_URL: url = 'http://127.0.0.1:9', LETTERS_FOLDER: folder = '/tmp' } = process.env

const policy = {
  ...lora({ name: 'letters', base: 'letters', serve: vllm({ baseURL: `${url}/v1`, folder }) }),
  learning: { core: () => lettersCore('letters'), lr: 0.3 },
}

/** Must look for the letter with a tool, and say it. What is asked for directly is known without. */
export const reader = llmAgent({
  name: 'reader',
  policy,
  maxTurns: 3,
  prompt: ({ letter, shown }: LettersTask) => (shown ? letter : '?'),
  tools: ({ letter }) => ({
    look: tool({ description: 'the letter', inputSchema: z.object({}), execute: async () => letter }),
  }),
  grade: ({ answer, task }) => answer === task.input.letter,
})

export interface LettersTask {
  readonly letter: string
  readonly shown?: boolean
  /** Tasks with the same letter are of different content. */
  readonly number: number
}

export const lettersTasks = (count: number, shown = false) =>
  Array.from({ length: count }, (_, number) => ({
    id: `${shown ? 'shown' : 'hidden'}${number}`,
    input: { letter: 'abcdef'[number % 6]!, number, ...(shown && { shown }) },
  }))

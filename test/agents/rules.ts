import { tool } from 'ai'
import { llmAgent } from 'manyworlds/agents'
import { textPolicy } from 'manyworlds/train'
import * as z from 'zod'
import { rules } from '../models/scripted/learning.ts'

/** Tasks that are right only in a form that nobody is told: graders say it in their feedback. */

const INSTRUCTIONS = 'Answer with the value.'

const kindOf = (input: string) => input.split(' ')[0]!

const grade = ({ answer, groundTruth, task }: { answer: unknown; groundTruth: unknown; task: { input: string } }) => {
  const success = answer === groundTruth
  const kind = kindOf(task.input)
  return { reward: success ? 1 : 0, success, feedback: success ? 'right' : `wrong. For ${kind} write ${rules[kind]}.` }
}

export const writer = llmAgent({
  ...{ name: 'rules-writer', model: 'student', grade },
  policy: textPolicy({ name: 'writing', texts: { instructions: INSTRUCTIONS } }),
})

/** The same, with a tool whose description is a text too. */
export const toolWriter = llmAgent({
  ...{ name: 'rules-tool-writer', model: 'student', grade },
  tools: { lookup: tool({ description: 'x', inputSchema: z.object({}), execute: () => 'nothing' }) },
  policy: textPolicy({ texts: { instructions: INSTRUCTIONS, 'tools.lookup': 'Looks something up.' } }),
})

/** Its grader says only how good an answer is. */
export const silentWriter = llmAgent({
  ...{ name: 'rules-silent-writer', model: 'student' },
  grade: ({ answer, groundTruth }) => (answer === groundTruth ? 1 : 0),
  policy: textPolicy({ texts: { instructions: INSTRUCTIONS } }),
})

/** Nobody grades it. */
export const ungradedWriter = llmAgent({
  ...{ name: 'rules-ungraded-writer', model: 'student' },
  policy: textPolicy({ texts: { instructions: INSTRUCTIONS } }),
})

const KINDS = Object.keys(rules)

/** So many tasks of each part, of all kinds in turn. */
export function rulesTasks({ train = 36, validation = 18, test = 60 } = {}) {
  const part = (count: number, begin: number) =>
    Array.from({ length: count }, (_, n) => {
      const kind = KINDS[n % KINDS.length]!
      const value = String(begin + n)
      return { input: `${kind} ${value}`, groundTruth: rules[kind]!.replace('N', value), id: `${kind}-${value}` }
    })
  return { train: part(train, 1000), validation: part(validation, 2000), test: part(test, 3000) }
}

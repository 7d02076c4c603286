import { llmAgent } from 'manyworlds/agents'
import { textPolicy } from 'manyworlds/train'

/** Questions about a shop that no model has heard of: what it must know has to get into its instructions. */

interface Fact {
  readonly says: string
  /** What an answer that knows it has in it. */
  readonly key: string
  readonly questions: readonly string[]
}

const FACTS: readonly Fact[] = [
  {
    ...{ says: 'The manager of the shop is Alice Fenwick.', key: 'Alice' },
    questions: [
      ...['Who is the manager of the shop?', 'Who manages the shop?', 'What is the name of the manager?'],
      ...['Who is your manager?', 'Tell me who manages the shop.', 'What is the manager of the shop called?'],
      ...['Who is the manager here?', 'Please name the manager of the shop.'],
    ],
  },
  {
    ...{ says: 'The shop is in the town of Oldbury.', key: 'Oldbury' },
    questions: [
      ...['Where is the shop?', 'In which town is the shop?', 'What town is the shop in?'],
      ...['Which town is the shop located in?', 'Where can I find the shop?', 'Where is your shop located?'],
      ...['What is the name of the town of the shop?', 'Tell me where the shop is.'],
    ],
  },
  {
    ...{ says: 'The shop closes at 9 pm.', key: '9' },
    questions: [
      ...['When does the shop close?', 'At what time does the shop close?', 'Until when is the shop open?'],
      ...['How late is the shop open?', 'What time does the shop close?', 'When do you close the shop?'],
      ...['When does the shop close in the evening?', 'Tell me when the shop closes.'],
    ],
  },
  {
    ...{ says: 'The phone number of the shop is 5550.', key: '5550' },
    questions: [
      ...[
        'What is the phone number of the shop?',
        'Which number do I call to reach the shop?',
        'How can I call the shop?',
      ],
      ...[
        'What number does the shop have?',
        'Tell me the phone number of the shop.',
        'Which phone number has the shop?',
      ],
      ...['What is the number of the shop?', 'Please give me the phone number of the shop.'],
    ],
  },
]

const factOf = (question: string) => FACTS.find(({ questions }) => questions.includes(question))!

export const clerk = llmAgent({
  ...{ name: 'shop-clerk', model: 'small', temperature: 0, maxOutputTokens: 16 },
  policy: textPolicy({ name: 'clerk', texts: { instructions: 'You answer questions about a shop.' } }),
  grade: ({ answer, task }: { answer: unknown; task: { input: string } }) => {
    const { key, says } = factOf(task.input)
    const success = String(answer).includes(key)
    return { reward: success ? 1 : 0, success, feedback: success ? 'Right.' : `Wrong: ${says}` }
  },
})

/** Of each fact three questions to train on, two to validate and three to test: none is in two parts. */
export const shopTasks = () => {
  const part = (begin: number, end: number) =>
    FACTS.flatMap(({ questions }) => questions.slice(begin, end)).map((input) => ({ input }))
  return { train: part(0, 3), validation: part(3, 5), test: part(5, 8) }
}

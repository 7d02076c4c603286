// Tasks from a CSV file, in parts that share no question. Run it with: node examples/data-sets.ts
import { defineAgent, Runners } from 'manyworlds'
import { type CsvRow, fromCsv, split } from 'manyworlds/data'

const add = defineAgent({
  name: 'add',
  run: async (question: string) => {
    const [, a, b] = /(\d+) plus (\d+)/i.exec(question) ?? []
    return Number(a) + Number(b)
  },
})

// 250 rows; 50 of the questions are there twice, in other letters and on two lines.
const file = new URL('data-sets/sums.csv', import.meta.url)
type Row = CsvRow<'id' | 'question' | 'sum'>
const tasks = fromCsv(file, ({ id, question, sum }: Row) => add.task(question, { id, groundTruth: Number(sum) }))
const parts = split(tasks, { train: 0.8, validation: 0.1, test: 0.1 })

const partOf = new Map<number, string>()
let rows = 0
for (const name of ['train', 'validation', 'test'] as const) {
  const responses = await Runners.runTask(parts[name], { workerNum: 2, store: false })
  for (const { success, answer } of responses.values()) {
    if (!success) throw new Error('every sum can be done')
    if ((partOf.get(answer) ?? name) !== name) throw new Error(`the sum ${answer} is in two parts`)
    partOf.set(answer, name)
  }
  rows += responses.size
  console.log(`${name}: ${responses.size} tasks`)
}
console.log(`${rows} rows, ${partOf.size} questions, none of them in two parts`)

import { createHash } from 'node:crypto'

/** A problem, and how its answer begins: the model has only to go on with the number. */
export interface Problem {
  readonly question: string
  /** `67 + 75 =` */
  readonly begun: string
}

/** Problems of one kind. The kind is in the metadata, so that `manyworlds show RUN --by kind` tells them apart. */
const task = (kind: string, question: string, begun: string, answer: number) => ({
  id: `${kind} ${begun}`,
  input: { question, begun },
  // For the grader alone: the agent never sees it.
  groundTruth: answer,
  metadata: { kind },
})

export type ProblemTask = ReturnType<typeof task>

const sum = (kind: string, a: number, b: number) => {
  const problem = b < 0 ? `${a} - ${-b}` : `${a} + ${b}`
  return task(kind, `State the final answer to the following arithmetic problem: ${problem} =`, `${problem} =`, a + b)
}

/**
 * Sums and differences of two numbers with two digits, as the data set chain_sum of reasoning-gym has them. The parts are divided by operands:
 * 67 + 75 and 75 + 67 are one problem, so what is tested was not trained in another order.
 */
export function chainSums(): Record<'train' | 'validation' | 'test', ProblemTask[]> {
  const parts = { train: [] as ProblemTask[], validation: [] as ProblemTask[], test: [] as ProblemTask[] }
  for (let a = 10; a < 100; a++)
    for (let b = 10; b < 100; b++)
      for (const sign of [1, -1]) {
        const key = `${Math.min(a, b)} ${sign} ${Math.max(a, b)}`
        const draw = createHash('sha256').update(key).digest()[0]! / 256
        const part = draw < 0.8 ? 'train' : draw < 0.9 ? 'validation' : 'test'
        parts[part].push(sum('chain_sum', a, sign * b))
      }
  return parts
}

/** Two digits and one: sums of a size that is never trained. */
export const smallSums = (): ProblemTask[] =>
  pairs(range(10, 100), range(1, 10)).map(([a, b]) => sum('two digits and one', a, b))

/** Another kind of problem, at which the model should not become worse. */
export const products = (): ProblemTask[] =>
  pairs(range(2, 13), range(2, 21)).map(([a, b]) => {
    const problem = `${a} * ${b}`
    const question = `Solve the following multiplication: ${problem}. Give only the result as your final answer.`
    return task('product', question, `${problem} =`, a * b)
  })

/** So many of them, by their content and not by chance. */
export const some = (tasks: readonly ProblemTask[], count: number): ProblemTask[] => {
  const keyOf = ({ id }: ProblemTask) => createHash('sha256').update(id).digest('hex')
  return [...tasks].sort((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1)).slice(0, count)
}

const range = (from: number, to: number) => Array.from({ length: to - from }, (_, at) => from + at)
const pairs = (a: readonly number[], b: readonly number[]) =>
  a.flatMap((one) => b.map((other) => [one, other] as const))

// An agent in an environment: text tasks that take several tool calls each, and a policy that knows nothing yet.
import { type ActionStep, Runners } from 'manyworlds'
import { clerk, deskTasks } from './tool-desk/desk.ts'

const tasks = deskTasks({ part: 'train', count: 2000, seed: 1 }).map((input) => clerk.task(input))
const responses = [...(await Runners.runTask(tasks, { seed: 1 })).values()]

const episodes = responses.map(({ trajectory }) => trajectory as readonly ActionStep[])
const solved = episodes.filter((steps) => steps.at(-1)?.reward === 1)
const steps = episodes.reduce((sum, { length }) => sum + length, 0) / episodes.length
console.log(
  `${solved.length} of ${episodes.length} tasks solved by chance, ${steps.toFixed(1)} steps each; one of them:`,
)

for (const { observation, action, candidates, reward } of solved.at(-1) ?? []) {
  const { text, numbers } = observation as { text: string; numbers: readonly number[] }
  console.log(`  ${text} [${numbers.join(' ')}] -> ${action} (of ${candidates?.length}), reward ${reward}`)
}

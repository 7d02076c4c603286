// An agent in an environment: text tasks that take several tool calls each, and a policy that knows nothing yet.
import { Runners } from 'manyworlds'
import { clerk, type DeskObservation, deskTasks } from './tool-desk/desk.ts'

const tasks = deskTasks({ part: 'train', count: 2000, seed: 1 }).map((input) => clerk.task(input))
const responses = [...(await Runners.runTask(tasks, { seed: 1 })).values()]

const solved = responses.filter(({ episode }) => episode?.success)
const steps = responses.reduce((sum, { trajectory }) => sum + trajectory.length, 0) / responses.length
console.log(
  `${solved.length} of ${responses.length} tasks solved by chance, ${steps.toFixed(1)} steps each; one of them:`,
)

for (const step of solved.at(-1)?.trajectory ?? []) {
  if (step.kind !== 'action') continue
  const { text, numbers } = step.observation as DeskObservation
  console.log(
    `  ${text} [${numbers.join(' ')}] -> ${step.action} (of ${step.candidates?.length}), reward ${step.reward}`,
  )
}

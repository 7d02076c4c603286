import { readFileSync, writeFileSync } from 'node:fs'
import { type OpenEnvTask, openEnv, pythonWorld, randomPolicy, stepAgent } from 'manyworlds/agents'

// ---- worlds of Gymnasium itself

const lake = pythonWorld<number, number>({ kind: 'gymnasium', id: 'FrozenLake-v1' })
const cart = pythonWorld<number[], number>({ kind: 'gymnasium', id: 'CartPole-v1' })
const pendulum = pythonWorld<number[], number[]>({ kind: 'gymnasium', id: 'Pendulum-v1', maxEpisodeSteps: 30 })

interface Seeded {
  readonly seed: number
}

/** The same as `action` in test/worlds/python/plain_gymnasium.py. */
export const walker = stepAgent({
  name: 'walker',
  environment: lake,
  act: ({ step, task }) => ((task.input as Seeded).seed * 31 + step * 17 + ((step * step) % 7)) % 4,
  maxSteps: 1000,
})
export const balancer = stepAgent({
  name: 'balancer',
  environment: cart,
  act: ({ observation }) => (observation[2]! + observation[3]! > 0 ? 1 : 0),
  maxSteps: 1000,
})
export const swinger = stepAgent({
  name: 'swinger',
  environment: pendulum,
  act: ({ observation }) => [observation[1]! * 3],
  maxSteps: 1000,
})
export const wanderer = stepAgent({ name: 'wanderer', environment: lake, policy: randomPolicy(), maxSteps: 20 })

// ---- worlds that do what they should not

const odd = pythonWorld<unknown, number>({ kind: 'gymnasium', id: 'odd_worlds:Odd-v0', name: 'odd' })

function pythonOfThisWorker(): number {
  const children = readFileSync(`/proc/self/task/${process.pid}/children`, 'utf8').trim().split(' ')
  return Number(children.find((pid) => readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('world_server')))
}

/** Does what its task says, action by action. */
export const doer = stepAgent({
  name: 'doer',
  environment: odd,
  act: ({ step, task }) => {
    const { actions, kill } = task.input as { actions: readonly number[]; kill?: { file: string; whom: string } }
    if (kill !== undefined && step === 2) {
      const pid = pythonOfThisWorker()
      writeFileSync(kill.file, `${pid} `, { flag: 'a' })
      process.kill(kill.whom === 'python' ? pid : process.pid, 'SIGKILL')
    }
    return actions[step]!
  },
  maxSteps: 1000,
})

// ---- reasoning-gym

const questions = pythonWorld({ kind: 'reasoning-gym' })

/** Answers as its task says. */
export const solver = stepAgent({
  name: 'solver',
  environment: questions,
  act: ({ task }) => (task.metadata as { answer: string }).answer,
  maxSteps: 1,
})

// ---- OpenEnv: the servers are started by the tests, on ports that they tell

const counting = (variable: string, callTimeoutMs: number) =>
  openEnv<{ total: number; drawn: number; sessions: number }, { number: number; peak?: number }>({
    url: process.env[variable] ?? 'http://127.0.0.1:1',
    callTimeoutMs,
    capacityWaitMs: 60_000,
  })

const count = (name: string, environment: ReturnType<typeof counting>) =>
  stepAgent({
    name,
    environment,
    act: ({ step, task }) => {
      const { numbers, peak = 0 } = task.input as OpenEnvTask & { numbers: readonly number[]; peak?: number }
      return { number: numbers[step % numbers.length]!, peak }
    },
    maxSteps: 100,
  })

export const counter = count('counter', counting('OPENENV_URL', 30_000))
export const cutCounter = count('cut-counter', counting('CUT_OPENENV_URL', 6000))

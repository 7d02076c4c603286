import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Runners } from 'manyworlds'
import { llmAgent } from 'manyworlds/agents'
import { listTrainings, StoredTraining } from 'manyworlds/runs'
import {
  DistributedTrainingPipeline,
  type EpochReport,
  loadPolicy,
  type PipelineOptions,
  type PromptLearnerOptions,
  promptLearner,
  textPolicy,
} from 'manyworlds/train'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { openForReading } from '../../dist/store/open-for-reading.js'
import { driver, lightsTasks } from '../agents/lights.ts'
import { rulesTasks, silentWriter, toolWriter, ungradedWriter, writer } from '../agents/rules.ts'
import { manyworlds } from '../cli/manyworlds.ts'
import { type ModelServer, startModelServer } from '../models/scripted-server.ts'
import { startNode } from '../nodes/daemon.ts'

let server: ModelServer
beforeAll(async () => {
  server = await startModelServer()
})
afterAll(async () => {
  await Runners.shutdown()
  await server.close()
})

const newStore = () => {
  const path = mkdtempSync(join(tmpdir(), 'mw-prompts-'))
  onTestFinished(() => rmSync(path, { recursive: true, force: true }))
  return path
}

const price = { input: 1, output: 2 }
const modelsWith = (reflect: string) => ({
  student: { baseURL: server.baseURL, model: 'student', price },
  large: { baseURL: server.baseURL, model: reflect, price },
})

const learnerWith = (more: Partial<PromptLearnerOptions> = {}) =>
  promptLearner({ reflect: 'large', budget: { evaluations: 200 }, ...more })

const options = (more: Partial<PipelineOptions> = {}): PipelineOptions => ({
  ...{ agent: writer, tasks: rulesTasks(), models: modelsWith('reflector'), runId: 'rules', workerNum: 1, seed: 3 },
  ...{
    store: newStore(),
    evaluate: { testRollouts: 1 },
    learner: learnerWith(),
    resume: 'auto',
    progress: () => ({ notice: () => {} }),
  },
  ...more,
})

async function train(given: PipelineOptions, epochs?: number): Promise<EpochReport[]> {
  const reports: EpochReport[] = []
  for await (const report of new DistributedTrainingPipeline(given).train(epochs === undefined ? {} : { epochs }))
    reports.push(report)
  return reports
}

const small = { train: 12, validation: 6, test: 6 }

test('texts become better on tasks that were never seen; controls with the same budget and the same choice do not', {
  timeout: 300_000,
}, async () => {
  const [learned, random, blind] = [
    await train(options()),
    await train(options({ learner: learnerWith({ control: 'random' }) })),
    await train(options({ learner: learnerWith({ control: 'blind' }) })),
  ]
  const { test } = learned.at(-1)!
  expect(test!.before.success!.value).toBeLessThan(0.3)
  expect(test!.success!.value).toBeGreaterThan(0.9)
  expect(test!.success!.low).toBeGreaterThan(test!.before.success!.high)
  expect(test!.difference!.low).toBeGreaterThan(0.5)
  for (const control of [random, blind]) {
    expect(control.at(-1)!.test!.success!.value).toBeLessThan(0.3)
    expect(control.at(-1)!.test!.success!.high).toBeLessThan(test!.success!.low)
  }
  // They had their chances.
  expect(random.at(-1)!.metrics.proposed).toBeGreaterThan(20)
  expect(blind.at(-1)!.metrics.proposed).toBeGreaterThan(10)
})

test('the result is a diff for people and a folder for programs; show and trainings tell of it', async () => {
  const given = options({ agent: toolWriter })
  const store = given.store as string
  const say = (...words: string[]) => manyworlds(words, { cwd: store, env: { MANYWORLDS_STORE: store } })
  const reports = await train(given)
  expect(reports.at(-1)!.test!.success!.value).toBeGreaterThan(0.9)
  const folder = join(newStore(), 'best')
  const exported = await say('export', 'rules', '--policy', folder)
  expect(exported.code, exported.stderr).toBe(0)
  const diff = readFileSync(join(folder, 'changes.diff'), 'utf8')
  expect(diff).toMatch(
    /^--- instructions.md\tversion 0\n\+\+\+ instructions.md\tversion \d+\n@@ -1 \+1 @@\n-Answer with the value\.\n\+Answer with the value\. For /,
  )
  expect(diff).toContain('+++ tools.lookup.md')
  expect(readdirSync(folder).sort()).toEqual(
    expect.arrayContaining(['instructions.md', 'tools.lookup.md', 'policy.json']),
  )
  const { text, version } = await loadPolicy(folder)
  expect(text!.instructions).toBe(readFileSync(join(folder, 'instructions.md'), 'utf8').trimEnd())
  expect(version).toBe(reports.at(-1)!.best)
  const shown = await say('show', 'rules')
  expect(shown.stdout).toContain(`texts of version ${version}, compared with the first`)
  expect(shown.stdout).toContain('+For ')
  expect(shown.stdout).toMatch(/evaluations +\d+ +\d+/)
  expect((await say('trainings')).stdout).toMatch(/rules +finished/)
  expect(listTrainings({ store })[0]).toMatchObject({ best: version, status: 'finished' })
  const reflection = await say('show', 'rules.u00000.reflect', 'ask')
  expect(reflection.stdout).toContain('An assistant works on tasks')
})

test('the test tasks are seen once, at the end, and no reflection sees a validation or test task', async () => {
  const given = options({ tasks: rulesTasks(small), learner: learnerWith({ budget: { evaluations: 60 } }) })
  const before = (await server.requests({ model: 'student' })).length
  await train(given)
  const bodies = (await server.requests({ model: 'student' })).slice(before).map(({ body }) => body)
  const tests = bodies.flatMap((body, place) => (/"\w+ 300\d"/.test(body) ? [place] : []))
  // The best version and the first.
  expect(tests).toHaveLength(2 * small.test)
  expect(Math.min(...tests)).toBe(bodies.length - tests.length)
  const asked = (await server.requests({ model: 'reflector' })).map(({ body }) => body)
  for (const body of asked) expect(body).not.toMatch(/\b[23]0\d\d\b/)
})

test('parent and child have the same tasks with the same seeds', async () => {
  const given = options({
    tasks: rulesTasks(small),
    rollouts: 2,
    learner: learnerWith({ budget: { evaluations: 60 } }),
  })
  const [first] = await train(given, 2)
  // The first validation, and both versions, each task twice.
  expect(first!.metrics.evaluations).toBe(small.validation + 2 * 3 * 2)
  using training = StoredTraining.open('rules', { store: given.store as string })
  const [parent, child, ...others] = training.plans()
  expect(child).toMatchObject({ epoch: 1, version: 1, seed: parent!.seed, tasks: parent!.tasks })
  expect(parent).toMatchObject({ epoch: 1, version: 0 })
  expect(others[0]!.seed).not.toBe(parent!.seed)
})

test('the budget of evaluations holds, and is said to be too small before anything starts', async () => {
  const tasks = rulesTasks(small)
  for (const evaluations of [18, 31, 44]) {
    const given = options({ tasks, learner: learnerWith({ budget: { evaluations } }), models: modelsWith('reflector') })
    await train(given)
    using training = StoredTraining.open('rules', { store: given.store as string })
    const collected = training.plans().reduce((sum, plan) => sum + plan.tasks.length, 0)
    const validated = training.evaluations().filter(({ split }) => split === 'validation').length * small.validation
    expect(collected + validated).toBeLessThanOrEqual(evaluations)
    expect(collected + validated).toBeGreaterThan(evaluations - 14)
  }
  const few = options({ tasks, learner: learnerWith({ budget: { evaluations: 17 } }) })
  await expect(train(few)).rejects.toMatchObject({
    ...{
      code: 'CONFIG_INVALID',
      message: expect.stringMatching(
        /is 17, but the first iteration needs 18: 6 to validate .*6 to try .*6 to validate/,
      ),
    },
  })
  expect(listTrainings({ store: few.store as string })).toEqual([])
})

test('the budget of money holds with everything in it, and needs prices', async () => {
  const spentWith = async (usd: number) => {
    const notices: string[] = []
    const given = options({
      ...{ learner: learnerWith({ budget: { usd } }), tasks: rulesTasks({ ...small, test: 20 }) },
      progress: () => ({ notice: (line) => void notices.push(line) }),
    })
    await train(given)
    return { usd: costOf(given.store as string), notices }
  }
  const { usd, notices } = await spentWith(0.004)
  expect(usd).toBeLessThanOrEqual(0.004)
  expect(usd).toBeGreaterThan(0.002)
  expect(notices.at(-1)).toMatch(
    /the learner has finished: \$0\.00\d+ of \$0\.004 is spent, and another iteration and the test may cost \$0\.00/,
  )
  const { price: _, ...free } = modelsWith('reflector').large
  const unpriced = options({
    learner: learnerWith({ budget: { usd: 1 } }),
    models: { ...modelsWith('reflector'), large: free },
  })
  await expect(train(unpriced)).rejects.toMatchObject({
    ...{ code: 'CONFIG_INVALID', message: expect.stringContaining("'large' has none; give models.large a `price`") },
  })
})

/** All that is stored of what calls have cost. */
function costOf(store: string): number {
  const db = openForReading(join(store, 'store.sqlite'))
  try {
    return (db.prepare('SELECT total(cost) AS usd FROM _attempts').get() as { usd: number }).usd
  } finally {
    db.close()
  }
}

test('answers of no use are counted, and change nothing', async () => {
  const given = options({ tasks: rulesTasks(small), models: modelsWith('reflector-cut') })
  const reports = await train(given, 4)
  expect(reports.at(-1)).toMatchObject({ version: 0, best: 0, metrics: { unusable: 4, proposed: 0 } })
  expect(reports.at(-1)!.test!.difference!.value).toBe(0)
})

test('a model that cannot be asked ends the training after three tries, with the reason; mended, it goes on', async () => {
  const store = newStore()
  const tasks = rulesTasks(small)
  const broken = train(options({ tasks, store, models: modelsWith('401') }), 5)
  await expect(broken).rejects.toMatchObject({
    ...{
      code: 'TRAINING_FAILED',
      message: expect.stringMatching(/'large' that rewrites texts failed several times in a row.*401/s),
    },
  })
  const reports = await train(options({ tasks, store }), 5)
  expect(reports.at(-1)!.metrics.proposed).toBeGreaterThan(0)
})

test('a grader without feedback is worth a word, once; one that grades nothing ends the training', async () => {
  const notices: string[] = []
  const progress = () => ({ notice: (line: string) => void notices.push(line) })
  await train(options({ agent: silentWriter, tasks: rulesTasks(small), progress }), 3)
  expect(notices.filter((line) => line.startsWith('no grader returned `feedback`'))).toHaveLength(1)
  await expect(train(options({ agent: ungradedWriter, tasks: rulesTasks(small) }))).rejects.toMatchObject({
    ...{ code: 'TRAINING_FAILED', message: expect.stringContaining('give the agent a grader') },
  })
})

test('what makes no sense is refused before anything starts', async () => {
  const wrong = async (more: Partial<PipelineOptions>, code: string, message: RegExp) => {
    const given = options(more)
    const error = await Promise.resolve()
      .then(() => train(given))
      .catch((thrown: unknown) => thrown)
    expect(error).toMatchObject({ code, message: expect.stringMatching(message) })
    expect(readdirSync(given.store as string)).toEqual([])
  }
  await wrong({ learner: learnerWith({ reflect: 'larg' }) }, 'MODEL_UNKNOWN', /'larg'; did you mean "large"\?/)
  await wrong(
    { overlap: true },
    'CONFIG_INVALID',
    /`overlap` does not apply to a learner that selects its own training data/,
  )
  await wrong({ tasksPerUpdate: 4 }, 'CONFIG_INVALID', /`tasksPerUpdate`.*`minibatch`/)
  await wrong({ control: 'off' }, 'CONFIG_INVALID', /`control: 'random'`/)
  await wrong({ tasks: { ...rulesTasks(), validation: [] } }, 'CONFIG_INVALID', /there are no validation tasks/)
  await wrong({ evaluate: false }, 'CONFIG_INVALID', /there are no validation tasks/)
  await wrong({ agent: driver, tasks: lightsTasks(60) }, 'CONFIG_INVALID', /give it textPolicy/)
  await wrong({ learner: learnerWith({ components: ['tools.x'] }) }, 'CONFIG_INVALID', /the policy has instructions/)
  expect(() =>
    llmAgent({
      ...{ name: 'toolless', model: 'm', module: import.meta.url },
      policy: textPolicy({ texts: { 'tools.find': 'Finds.' } }),
    }),
  ).toThrow(/has a text 'tools.find', but the agent has no such tool; its tools are none/)
})

test('it goes on with the same settings and texts only; a larger budget goes further', async () => {
  const store = newStore()
  const tasks = rulesTasks(small)
  const first = await train(options({ store, tasks, learner: learnerWith({ budget: { evaluations: 31 } }) }))
  const other = train(options({ store, tasks, learner: learnerWith({ minibatch: 2 }) }))
  await expect(other).rejects.toMatchObject({
    ...{
      code: 'TRAINING_CHANGED',
      message: expect.stringContaining('algorithm.learner.prompts.minibatch: 3 before, 2 now'),
    },
  })
  const again = await train(options({ store, tasks, learner: learnerWith({ budget: { evaluations: 31 } }) }))
  expect(again).toMatchObject([{ epoch: first.at(-1)!.epoch, digest: first.at(-1)!.digest, test: first.at(-1)!.test }])
  const more = await train(options({ store, tasks, learner: learnerWith({ budget: { evaluations: 80 } }) }))
  expect(more[0]!.epoch).toBe(first.at(-1)!.epoch + 1)
  const whole = await train(options({ tasks, learner: learnerWith({ budget: { evaluations: 80 } }) }))
  expect(more.at(-1)!.digest).toBe(whole.at(-1)!.digest)
})

test('on another machine, by code that is sent there, it comes to the same texts', async () => {
  const node = await startNode()
  onTestFinished(() => node.kill('SIGTERM'))
  const here = { tasks: rulesTasks(small), learner: learnerWith({ budget: { evaluations: 44 } }) }
  const [local] = (await train(options(here))).slice(-1)
  const there = { engineName: 'nodes', nodes: { addresses: [node.address] } } as const
  const [remote] = (await train(options({ ...here, ...there }))).slice(-1)
  expect(remote!.digest).toBe(local!.digest)
})

test('stopped by a signal in the middle, it says how to go on, and comes to the same texts', async () => {
  const tasks = rulesTasks(small)
  const learner = () => learnerWith({ budget: { evaluations: 60 } })
  const whole = await train(options({ tasks, learner: learner() }))
  const store = newStore()
  const stop = new AbortController()
  let episodes = 0
  const progress = () => ({ notice: () => {}, episode: () => void (++episodes === 14 && stop.abort()) })
  await expect(
    train(options({ tasks, store, learner: learner(), signal: stop.signal, progress })),
  ).rejects.toMatchObject({
    ...{ code: 'TRAINING_STOPPED', message: expect.stringContaining("resume: 'rules'") },
  })
  const rest = await train(options({ tasks, store, learner: learner() }))
  expect(rest.at(-1)!.digest).toBe(whole.at(-1)!.digest)
})

test('a sweep over seeds tells how much is chance', async () => {
  const { runId: _, resume: __, ...given } = options({ tasks: rulesTasks(small) })
  const pipeline = new DistributedTrainingPipeline({
    ...{ ...given, runId: 'seeds' },
    learner: learnerWith({ budget: { evaluations: 44 } }),
  })
  const { points } = await pipeline.sweep({ seeds: 2 }).summary()
  expect(points).toHaveLength(1)
  expect(points[0]!.test).not.toBeNull()
})

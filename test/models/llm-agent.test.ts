import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { type RunConfig, Runners, type TaskResponse } from '../../dist/index.js'
import { checkTrajectory } from '../../dist/store/index.js'
import {
  adder,
  asker,
  city,
  counting,
  deaf,
  forgetful,
  former,
  outputless,
  outputs,
  planner,
  promptless,
  streamer,
} from '../agents/models.ts'
import { type ModelServer, startModelServer } from './scripted-server.ts'

let server: ModelServer
beforeAll(async () => {
  server = await startModelServer({ seed: 2 })
})
afterAll(async () => {
  await Runners.shutdown()
  await server.close()
})

const using = (model: string): RunConfig => ({
  ...{ models: { m: { baseURL: server.baseURL, model, price: { input: 1, output: 2 } } } },
  ...{ workerNum: 1, store: false },
})

const kinds = ({ trajectory }: TaskResponse) => trajectory.map(({ kind }) => kind).join(' ')
const toolSteps = ({ trajectory }: TaskResponse) => trajectory.filter((step) => step.kind === 'tool')

test('an agent with tools: every call of the model and of a tool is a step', async () => {
  const response = await Runners.runTask(adder.task('add something'), using('tools:3'))
  expect(response).toMatchObject({ answer: 'done after 3 calls', episode: { ending: { kind: 'terminated' } } })
  expect(kinds(response)).toBe('model tool model tool model tool model')
  for (const [place, step] of toolSteps(response).entries()) {
    expect(step.call).toMatchObject({ step: 2 * place, position: 0 })
    expect(step.result).toEqual(expect.any(Number))
  }
  expect(checkTrajectory(await response.toTrajectory())).toEqual([])
  expect(response.usage.costUsd).toBeGreaterThan(0)
})

test('calls that cannot be made are steps too, and the model hears of them', async () => {
  const response = await Runners.runTask(adder.task('add'), using('bad-tools'))
  expect(response).toMatchObject({ answer: 'done' })
  expect(toolSteps(response).map(({ name }) => name)).toEqual(expect.arrayContaining(['add', 'no-such-tool']))
  expect(toolSteps(response)).toHaveLength(4)
  expect(new Set(toolSteps(response).map(({ call }) => call!.position))).toEqual(new Set([0, 1, 2, 3]))
  expect(checkTrajectory(await response.toTrajectory())).toEqual([])
})

test('a tool that ignores its signal has failed, and is not waited for', async () => {
  const response = await Runners.runTask(deaf.task('go'), using('tools:1'))
  expect(toolSteps(response)).toMatchObject([{ error: { name: 'TimeoutError' } }])
  // The tool takes ten minutes.
  expect(toolSteps(response)[0]!.ms).toBeLessThan(50_000)
  expect(response.success).toBe(true)
})

test('limits cut an episode short', async () => {
  const run = (params: object) =>
    Runners.runTask(adder.withParams({ ...adder.params, ...params }).task('add'), using('tools:9'))
  const endings = await Promise.all([
    run({ maxTurns: 2 }),
    run({ maxTokens: 1 }),
    run({ maxCostUsd: 0.000001 }),
    run({ timeoutMs: 1 }),
  ])
  expect(endings.map(({ episode }) => episode?.ending)).toEqual([
    { kind: 'truncated', by: 'maxSteps' },
    { kind: 'truncated', by: 'budget' },
    { kind: 'truncated', by: 'budget' },
    { kind: 'truncated', by: 'timeout' },
  ])
  expect(kinds(endings[0]!)).toBe('model tool model tool')
})

test('an answer that a content filter cut is the failure of its task, and a step', async () => {
  const responses = await Runners.runTask([adder.task('add'), city.task('France')], using('filter'))
  for (const { error, trajectory, usage } of responses.values()) {
    expect(error).toMatchObject({ code: 'MODEL_CONTENT_FILTER' })
    expect(trajectory).toMatchObject([{ kind: 'model', finish: 'content_filter' }])
    expect(usage.costUsd).toBeGreaterThan(0)
  }
})

test('an agent that reaches its own time limit is not told to await its call', async () => {
  const lines: string[] = []
  const write = vi.spyOn(process.stderr, 'write').mockImplementation((line) => lines.push(String(line)) > 0)
  const brief = adder.withParams({ ...adder.params, timeoutMs: 300 })
  const { logs, episode } = await Runners.runTask(brief.task('add'), using('hang:9')).finally(() => write.mockRestore())
  expect(episode?.ending).toEqual({ kind: 'truncated', by: 'timeout' })
  expect([...logs, ...lines].join('\n')).not.toContain('await')
})

test('structured output is the answer, and checked', async () => {
  const good = await Runners.runTask(city.task('France'), using('json'))
  expect(good).toMatchObject({ answer: { name: expect.any(String), people: expect.any(Number) } })
  const wrong = await Runners.runTask(city.task('France'), using('json-wrong'))
  expect(wrong.error).toMatchObject({
    code: 'MODEL_OUTPUT_INVALID',
    message: expect.stringContaining('The answer: '),
  })
  const broken = await Runners.runTask(city.task('France'), using('json-broken'))
  expect(broken.error).toMatchObject({ code: 'MODEL_OUTPUT_INVALID', message: expect.stringContaining('not JSON') })
})

test('an output of the AI SDK is the answer, and checked', async () => {
  const { object, array, choice, json, text } = outputs
  const good = await Runners.runTask(
    [
      object.task('{"n":1}'),
      array.task('{"elements":[1,2]}'),
      choice.task('{"result":"yes"}'),
      json.task('{"x":[1]}'),
      text.task('hello'),
    ],
    using('echo'),
  )
  expect([...good.values()].map(({ answer }) => answer)).toEqual([{ n: 1 }, [1, 2], 'yes', { x: [1] }, 'hello'])
  const wrong = await Runners.runTask(
    [object.task('{"n":"one"}'), choice.task('{"result":"maybe"}'), choice.task('no JSON')],
    using('echo'),
  )
  const stopped = await Runners.runTask(outputless.task('add'), using('tools:9'))
  for (const { error } of [...wrong.values(), stopped]) expect(error).toMatchObject({ code: 'MODEL_OUTPUT_INVALID' })
})

test('an answer for a JSON schema is checked too; a schema that is none is refused before the call', async () => {
  const { plain, sdk, nonsense } = outputs
  const tasks = [plain, sdk].flatMap((agent) => [agent.task('[1, 2]'), agent.task('["one"]')])
  const responses = await Runners.runTask([...tasks, nonsense.task('[3]')], using('echo'))
  expect([...responses.values()].map(({ answer, error }) => error?.code ?? answer)).toEqual([
    ...[[1, 2], 'MODEL_OUTPUT_INVALID', [1, 2], 'MODEL_OUTPUT_INVALID'],
    'REQUEST_INVALID',
  ])
  expect(await server.requests({ body: '[3]' })).toEqual([])
})

test('a schema with optional properties is strict as OpenAI wants it; a null is read as absent', async () => {
  const trip = {
    ...{ title: expect.any(String), days: 3, guide: null, by: { kind: 'train' } },
    stops: [{ name: expect.any(String) }],
  }
  const [agent, direct] = await Promise.all([
    Runners.runTask(planner.task('a trip'), using('json')),
    Runners.runTask(former.task({ open: false }), using('json')),
  ])
  expect([agent.error, direct.error]).toEqual([undefined, undefined])
  expect(agent.answer).toEqual(trip)
  expect(direct.answer).toEqual(trip)
  const sent = (await server.requests({ body: 'a trip' })).map(
    ({ body }) => JSON.parse(body).response_format.json_schema,
  )
  expect(sent.map(({ strict }) => strict)).toEqual([true, true])
})

test('a schema that cannot be strict is sent without, and one line for each reason says so', async () => {
  const lines: string[] = []
  const tasks = ([true, true, 'loose', 'loose'] as const).map((open) => former.task({ open }))
  const write = vi.spyOn(process.stderr, 'write').mockImplementation((line) => lines.push(String(line)) > 0)
  const responses = await Runners.runTask(tasks, using('text')).finally(() => write.mockRestore())
  // The scripted model says no JSON; the server did not refuse the request.
  for (const { error } of responses.values()) expect(error).toMatchObject({ code: 'MODEL_OUTPUT_INVALID' })
  expect(lines.filter((line) => line.includes('without `strict`'))).toEqual([
    expect.stringMatching(/agent 'former': the JSON schema for model 'm' is sent without `strict`.*'counts' allows/),
    expect.stringMatching(/agent 'former': the JSON schema for model 'm' is sent without `strict`.*the schema allows/),
  ])
})

test('a task allows only some tools', async () => {
  await Runners.runTask(adder.task('nothing allowed', { tools: [] }), using('text'))
  const [request] = await server.requests({ body: 'nothing allowed' })
  expect(JSON.parse(request!.body)).not.toHaveProperty('tools')
})

test.each(['garbage', 'empty', 'half', 'cut-body'])(
  'a truncated reply (%s) of an AI SDK provider is tried again, as through `baseURL`',
  async (fault) => {
    const provider = createOpenAICompatible({ name: 'theirs', baseURL: server.baseURL })
    const models = { m: provider(`${fault}:2+echo`) }
    const prompt = `after ${fault}`
    const response = await Runners.runTask(asker.task({ model: 'm', prompt }), { models, workerNum: 1, store: false })
    expect(response.error).toBeUndefined()
    expect(response).toMatchObject({ answer: { text: prompt }, trajectory: [{ kind: 'model', retries: 2 }] })
  },
)

test.each(['driver', 'direct'] as const)(
  'a call via the %s that is not awaited is aborted, in the log, and said once',
  async (via) => {
    const { baseURL, url } = server
    const lines: string[] = []
    const write = vi.spyOn(process.stderr, 'write').mockImplementation((line) => lines.push(String(line)) > 0)
    const tasks = Array.from({ length: 6 }, (_, n) => forgetful.task({ url, waits: n > 0 }, { id: `${via}-${n}` }))
    const responses = await Runners.runTask(tasks, {
      models: { good: { baseURL, model: 'text', via }, slow: { baseURL, model: 'hang:9', via } },
      ...{ workerNum: 1, store: false },
    }).finally(() => write.mockRestore())
    for (const { answer, logs, trajectory } of responses.values()) {
      expect([answer, trajectory.length]).toEqual(['done', 1])
      expect(logs).toEqual(["a call of model 'slow' was aborted, because the task ended without awaiting it"])
    }
    expect(lines.filter((line) => line.includes('await every call'))).toEqual([
      expect.stringContaining("agent 'forgetful': a task ended while a call of model 'slow' was under way"),
    ])
    // The first may have ended before its request was sent.
    const ends = async () =>
      (await server.requests({ body: `forgotten by ${via}` }))
        .filter(({ body }) => !body.includes(`${via}-0`))
        .map(({ end }) => end)
    await expect.poll(ends).toEqual(Array.from({ length: 5 }, () => 'left'))
  },
)

test('streamText works, and its call is a step', async () => {
  const response = await Runners.runTask(streamer.task({ model: 'm' }), using('text:5'))
  expect(response.answer!.split(' ')).toHaveLength(5)
  expect(kinds(response)).toBe('model')
})

test('the same conversation goes on with the same bytes', async () => {
  const response = await Runners.runTask(adder.task('prefix'), using('tools:2'))
  const bodies = (await server.requests({ body: '"prefix"' })).map(({ body }) => body)
  expect(response.success && bodies.length).toBe(3)
  const start = (body: string) => body.slice(0, body.indexOf('"tools":[') - 2)
  expect(start(bodies[2]!).startsWith(start(bodies[1]!))).toBe(true)
})

test('a later run of the same id may have other models', async () => {
  const ask = (model: string) =>
    Runners.runTask(asker.task({ model: 'm', prompt: 'who are you?' }), { ...using(model), runId: 'the-same' })
  expect((await ask('echo')).answer!.text).toBe('who are you?')
  expect((await ask('text:3')).answer!.text.split(' ')).toHaveLength(3)
})

test('a model that the run does not have is known before anything starts', async () => {
  await expect(
    Runners.runTask(adder.task('x'), { models: { n: { baseURL: server.baseURL, model: 'text' } } }),
  ).rejects.toMatchObject({
    ...{ code: 'MODEL_UNKNOWN', message: expect.stringContaining("agent 'adder' calls the model 'm'") },
  })
  await expect(Runners.runTask(adder.task('x'))).rejects.toMatchObject({ code: 'MODEL_UNKNOWN' })
})

test('a model that the run does not have ends a stream of tasks too, before its first task', async () => {
  const tasks = async function* () {
    for (let n = 0; n < 3; n++) yield adder.task(`add ${n}`)
  }
  const { models } = using('text')
  const run = Runners.runTask(tasks(), { store: false, models: { n: models!.m! } })
  await expect(run).rejects.toMatchObject({ code: 'MODEL_UNKNOWN', message: expect.stringContaining('--model m=') })
})

test('a result that cannot be written as JSON is the failure of its tool; the model hears which one', async () => {
  const response = await Runners.runTask(counting.task('count'), using('tools:1'))
  expect(response).toMatchObject({ success: true })
  expect(toolSteps(response)).toMatchObject([
    { error: { message: expect.stringContaining("the result of tool 'count'") } },
  ])
})

test('a prompt function that returns no text is named', async () => {
  const { error } = await Runners.runTask(promptless.task('x'), using('text'))
  expect(error!.message).toBe(
    "`prompt` of agent 'promptless' must return a text or a list of messages; it returned number",
  )
})

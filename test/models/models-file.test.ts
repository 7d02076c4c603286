import { mkdirSync, writeFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { readModelsFile } from '../../src/models/driver/models-file.ts'
import { newFolder } from '../cli/manyworlds.ts'
import { expectOneError, printed, runScript } from '../support/run-script.ts'
import { userProject } from '../support/user-project.ts'
import { type ModelServer, startModelServer } from './scripted-server.ts'

let server: ModelServer
beforeAll(async () => {
  server = await startModelServer()
})
afterAll(() => server.close())

/** A server's answer has as many words as its model says: `text:3` has three. */
const words = (count: number, more: object = {}) => ({ baseURL: server.baseURL, model: `text:${count}`, ...more })

const SCRIPT = `
import { defineAgent, Runners } from 'manyworlds'
const ask = defineAgent({
  name: 'ask',
  run: async (model: string, ctx) => (await ctx.generate({ model, prompt: 'hello' })).text.split(' ').length,
})
const [models, config] = process.argv.slice(2).map((word) => JSON.parse(word))
const tasks = models.map((model: string) => ask.task(model, { id: model }))
const results = await Runners.runTask(tasks, { workerNum: 1, store: false, ...config })
for (const { id, answer, error } of results.values()) console.log(JSON.stringify([id, answer ?? error.message]))
`

/** What the models say, to a script in a folder with this models.json. */
async function ask(file: unknown, models: readonly string[], config: object = {}, env: Record<string, string> = {}) {
  const path = userProject({
    'package.json': '{"type":"module"}',
    'ask.ts': SCRIPT,
    'models.json': typeof file === 'string' ? file : JSON.stringify(file),
  })
  return runScript(path('ask.ts'), { cwd: path(''), args: [JSON.stringify(models), JSON.stringify(config)], env })
}

describe('a models.json in the current folder', () => {
  it('has the models of a run, below those of its configuration', async () => {
    const file = { small: words(2), big: words(3) }
    const ended = await ask(file, ['small', 'big'], { models: { big: words(5) } })
    expect(printed(ended), ended.stderr).toEqual([
      ['small', 2],
      ['big', 5],
    ])
  })

  it('may use variables of the environment', async () => {
    const file = { small: { ...words(2), baseURL: `\${SERVER}/v1`, model: `text:\${COUNT}` } }
    const env = { SERVER: server.baseURL.replace('/v1', ''), COUNT: '4' }
    const ended = await ask(file, ['small'], {}, env)
    expect(printed(ended), ended.stderr).toEqual([['small', 4]])
  })

  it('asks for keys and variables only of models that are called', async () => {
    const file = {
      small: words(2),
      keyed: words(3, { apiKeyEnv: 'NO_SUCH_KEY' }),
      placed: { baseURL: `\${NO_SUCH_PLACE}`, model: 'x' },
    }
    const ended = await ask(file, ['small', 'keyed', 'placed'])
    expect(printed(ended), ended.stderr).toEqual([
      ['small', 2],
      ['keyed', "models.json: model 'keyed' needs the environment variable NO_SUCH_KEY, which is not set or empty"],
      ['placed', "models.json: model 'placed' needs the environment variable NO_SUCH_PLACE, which is not set or empty"],
    ])
  })

  it('keeps variables with secrets of headers from workers', async () => {
    const path = userProject({
      'package.json': '{"type":"module"}',
      'look.ts': `
import { defineAgent, Runners } from 'manyworlds'
const look = defineAgent({ name: 'look', run: (name: string) => process.env[name] ?? 'withheld' })
for (const name of ['PLANTED', 'HARMLESS'])
  console.log(JSON.stringify((await Runners.runTask(look.task(name), { workerNum: 1, store: false })).answer))`,
      'models.json': JSON.stringify({
        small: words(2, { headers: { 'X-Api-Key': `\${PLANTED}`, 'X-Team': `\${HARMLESS}` } }),
      }),
    })
    const env = { PLANTED: 'a-planted-secret', HARMLESS: 'whales-and-dolphins' }
    const ended = await runScript(path('look.ts'), { cwd: path(''), env })
    expect(printed(ended), ended.stderr).toEqual(['withheld', 'whales-and-dolphins'])
  })

  it('asks for a key before anything starts, if an agent says which models it calls', async () => {
    const path = userProject({
      'package.json': '{"type":"module"}',
      'solve.ts': `
import { Runners } from 'manyworlds'
import { llmAgent } from 'manyworlds/agents'
const solver = llmAgent({ name: 'solver', model: 'keyed', instructions: 'Answer.' })
await Runners.runTask(solver.task('2 + 2'), { workerNum: 1, store: false })`,
      'models.json': JSON.stringify({ keyed: words(1, { apiKeyEnv: 'NO_SUCH_KEY' }) }),
    })
    const ended = await runScript(path('solve.ts'), { cwd: path('') })
    expectOneError(ended, 'CONFIG_INVALID', "models.json: model 'keyed' needs the environment variable NO_SUCH_KEY")
  })

  it('is the file of somebody else if nothing in it has a base URL', async () => {
    for (const other of ['{"small":"a.gguf","big":{"file":"b.gguf"}}', '[1, 2]', '// not even JSON', ''])
      expect(printed(await ask(other, ['small'], { models: { small: words(2) } }))).toEqual([['small', 2]])
  })

  it('is left alone if the run names another file, or wants none', async () => {
    const broken = '{"small": {"baseURL": '
    const other = `${newFolder()}/others.json`
    writeFileSync(other, JSON.stringify({ small: words(7) }))
    expect(printed(await ask(broken, ['small'], { modelsFile: other }))).toEqual([['small', 7]])
    expect(printed(await ask(broken, ['small'], { modelsFile: false, models: { small: words(2) } }))).toEqual([
      ['small', 2],
    ])
    expectOneError(await ask(broken, ['small']), 'CONFIG_INVALID', 'models.json: is not JSON: line 1, column 23:')
    expectOneError(
      await ask(broken, ['small'], { modelsFile: 'other.json' }),
      'CONFIG_INVALID',
      'other.json: file not found (ENOENT)',
    )
  })
})

const OK = '"baseURL": "http://127.0.0.1:1/v1", "model": "m"'

/** A file, and what is said about it. */
const MISTAKES: Readonly<Record<string, string>> = {
  [`{"small": {${OK}},}`]:
    'is not JSON: line 1, column 62: expected a key in double quotes, found "}"; remove the comma before it',
  [`{\n  // mine\n  "small": {${OK}}}`]:
    'is not JSON: line 2, column 3: expected a key in double quotes or \'}\', found "/"; JSON does not allow comments',
  [`{\n  "small": {${OK}}\n  "big": {}\n}`]: "is not JSON: line 3, column 3: expected ',' or '}', found \"\\\"\"",
  [`{"small": {${OK}`]: "is not JSON: line 1, column 60: expected ',' or '}', found the end",
  [`{"small": {${OK}, "temperature": 1}}`]: "unknown key 'small.temperature'; allowed: baseURL, model, apiKeyEnv,",
  '{"small": {"baseUrl": "http://127.0.0.1:1/v1", "model": "m"}}':
    "`small.baseURL` must be a string, it is undefined; unknown key 'small.baseUrl', did you mean 'baseURL'?",
  '{"small": {"baseURL": "127.0.0.1:1", "model": "m"}}':
    "`small.baseURL` must be a URL such as 'https://api.example.com/v1', it is '127.0.0.1:1'",
  '{"small": {"baseURL": "http://127.0.0.1:1/v1"}}': '`small.model` must be a string, it is undefined',
  [`{"small": {${OK}}, "big": "m"}`]: "`big` must be an object, it is 'm'",
  [`{"sm all": {${OK}}}`]: "the name `sm all` must have 1 to 64 letters, digits, '-', '_' or '.'",
  [`{"small": {${OK}, "requestsPerMinute": 0}}`]: '`small.requestsPerMinute` must be more than 0, it is 0',
  [`{"small": {${OK}, "timeoutMs": "1s"}}`]: "`small.timeoutMs` must be a finite number, it is '1s'",
  [`{"small": {${OK}, "apiKeyEnv": "sk-12345678"}}`]:
    '`small.apiKeyEnv` must be the name of an environment variable, not the key itself',
  '{"small": {"baseURL": "http://${}/v1", "model": "m"}}': `\`small.baseURL\` contains '\${}'; write environment variables as \${NAME}`,
  '{"small": {"baseURL": "${A-HOST}", "model": "m"}}': `\`small.baseURL\` contains '\${A-HOST}'`,
  '{"small": {"baseURL": "${PATH", "model": "m"}}': "`small.baseURL` contains '${PATH'",
  '{"small": {"baseURL": "${WRONG_URL}", "model": "m"}}': `\`small.baseURL\` must be a URL such as 'https://api.example.com/v1', it is '\${WRONG_URL}'`,
  [`{"small": {${OK}, "headers": {"x-key": 123456789}}}`]: '`small.headers.x-key` must be a string, it is a number',
}

describe('a mistake in a file of models', () => {
  it.each(Object.entries(MISTAKES))('%s', (text, message) => {
    process.env.WRONG_URL = 'a-secret-perhaps'
    const file = `${newFolder()}/models.json`
    writeFileSync(file, text)
    let said = ''
    try {
      readModelsFile(file)
    } catch (error) {
      expect(error).toMatchObject({ code: 'CONFIG_INVALID' })
      said = (error as Error).message
    }
    expect(said).toContain(`${file}: ${message}`)
    expect(said).not.toContain('a-secret-perhaps')
    expect(said).not.toContain('\n')
  })

  it('is also a file that was named and is none, or has no models', () => {
    const folder = newFolder()
    expect(() => readModelsFile(`${folder}/none.json`)).toThrow('none.json: file not found (ENOENT)')
    mkdirSync(`${folder}/folder.json`)
    expect(() => readModelsFile(`${folder}/folder.json`)).toThrow('folder.json: not a regular file')
    writeFileSync(`${folder}/other.json`, '{"small": {}}')
    expect(() => readModelsFile(`${folder}/other.json`)).toThrow('other.json: no model has a `baseURL`')
    writeFileSync(`${folder}/large.json`, ' '.repeat(2_000_000))
    expect(() => readModelsFile(`${folder}/large.json`)).toThrow('large.json: the file has 2000000 bytes')
  })
})

import { copyFileSync, existsSync, readFileSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { RunFile } from 'manyworlds/runs'
import { describe, expect, it } from 'vitest'
import { manyworlds } from './manyworlds.ts'
import { project, script } from './project.ts'

const ran = (path: (file: string) => string) => readFileSync(path('ledger.txt'), 'utf8').trimEnd().split('\n')
const stored = (path: (file: string) => string, runId: string) => {
  using run = RunFile.open(runId, { store: path('.manyworlds/runs') })
  return run.overview()
}

/** Prints what its worker has of some variables, and fails in another task. */
const ENV_SCRIPT = `
import { readFileSync, writeFileSync } from 'node:fs'
import { defineAgent, Runners } from 'manyworlds'
const NAMES = ['OPENAI_API_KEY', 'DEPTH', 'LEVEL', 'TONE']
const look = defineAgent({ name: 'look', run: async () => writeFileSync('seen.json', JSON.stringify(NAMES.map((name) => process.env[name] ?? null))) })
const fails = defineAgent({ name: 'fails', run: async () => { throw new Error('not today') } })
const env = { LEVEL: 'of the script', TONE: 'of the script' }
await Runners.runTask([look.task(), fails.task()], { workerNum: 1, env })
console.log(readFileSync('seen.json', 'utf8'))
`

describe('manyworlds run', () => {
  it('runs a script, says how it went, and leaves 0 when all succeeded', async () => {
    const { path, options } = project({ 'good.ts': script(8, 1) })
    const ended = await manyworlds(['run', 'good.ts', '--run-id', 'first'], options)
    expect(ended).toMatchObject({ code: 0, stdout: 'the script got 8\n' })
    expect(ended.stderr).toContain('[first] started: 8 tasks on local, 2 workers x 4')
    expect(ended.stderr).toContain('run first finished')
    expect(ended.stderr).toContain('8 succeeded (100%)')
    expect(stored(path, 'first')).toMatchObject({ status: 'finished', counts: { success: 8 }, script: path('good.ts') })
  })

  it('stores its options for a resume, and says what agents printed', async () => {
    const printing = script(3, 1).replace('return { n }', "console.log('at', n)\n    return { n }")
    const { path, options } = project({ 'good.ts': printing })
    const run = (...words: string[]) => manyworlds(['run', 'good.ts', ...words], options)
    const ended = await run('--run-id', 'first', '--seed', '7', '--limit', '2', '--', '--depth', '3')
    expect(ended.stderr.replaceAll(/\n {11}/g, ' ')).toMatch(
      /^printed +agents printed 2 lines; --show-logs \(showLogs: true\) prints them, or: .* show first --logs$/m,
    )
    using db = new DatabaseSync(stored(path, 'first').file, { readOnly: true })
    const { config } = db.prepare('SELECT config FROM _sessions').get() as { config: string }
    const words = ['run', 'good.ts', '--seed', '7', '--limit', '2', '--', '--depth', '3']
    expect(JSON.parse(config)).toMatchObject({ command: words })
    expect((await run('--show-logs')).stderr).not.toContain('agents printed')
    expect((await run('--quiet')).stderr).toBe('')
  })

  it('leaves 1 when some failed, and shows them by code with an example', async () => {
    const { options } = project({ 'bad.ts': script(20, 1, [3, 5]) })
    const ended = await manyworlds(['run', 'bad.ts'], options)
    expect(ended.code).toBe(1)
    expect(ended.stderr).toMatch(/failures +2 {2}TASK_THREW {2}t[35]: bad luck with [35]/)
    expect(ended.stderr).toMatch(/p50 .* p90 .* p99 .* max/)
    expect(ended.stderr).toMatch(/slowest/)
  })

  it('overrides the configuration of the script', async () => {
    const { path, options } = project({ 'slow.ts': script(2, 60_000) })
    const words = [
      'run',
      'slow.ts',
      '-w',
      '1',
      '-c',
      '7',
      '--timeout',
      '100ms',
      '--max-attempts',
      '2',
      '--seed',
      '9',
      '--store',
      'here',
      '--durability',
      'full',
    ]
    const ended = await manyworlds([...words, '--run-id', 'r'], options)
    expect(ended.code).toBe(1)
    expect(ended.stderr).toContain('1 worker x 7')
    using run = RunFile.open('r', { store: path('here') })
    expect([...run.responses()].map(({ status, attempts }) => `${status} ${attempts}`)).toEqual([
      'timeout 2',
      'timeout 2',
    ])
  })

  // Node's own mkdir tries for ever there.
  it('says that the folder of a store cannot be made below /proc', async () => {
    const { options } = project({ 'slow.ts': script(1, 1, []) })
    const ended = await manyworlds(['run', 'slow.ts', '--store', '/proc/nope/runs'], options)
    expect(ended.code).not.toBe(0)
    expect(ended.stderr).toMatch(/ENOENT[^\n]* mkdir '\/proc\/nope'/)
  })

  it('resumes, retries what failed, and passes arguments on', async () => {
    const files = { 'args.ts': `${script(6, 1, [2])}\nconsole.log(JSON.stringify(process.argv.slice(2)))` }
    const { path, options } = project(files)
    expect((await manyworlds(['run', 'args.ts', '--run-id', 'mine', '-q'], options)).code).toBe(1)
    const resumed = await manyworlds(['run', 'args.ts', '--resume', 'mi', '--', '--topic', 'whales'], options)
    expect(resumed.stdout).toContain('["--topic","whales"]')
    expect(resumed.stderr).toContain('[mine] resumed')
    expect(resumed.stderr).toMatch(/restored +6/)
    expect(ran(path)).toHaveLength(6)
    const retried = await manyworlds(['run', 'args.ts', '--resume', 'last', '--retry-failed'], options)
    expect(retried.code).toBe(1)
    expect(ran(path)).toHaveLength(7)
  })

  it('starts or resumes with --run-id and --resume auto', async () => {
    const { path, options } = project({ 'job.ts': script(4, 1) })
    const job = () => manyworlds(['run', 'job.ts', '--run-id', 'nightly', '--resume', 'auto'], options)
    expect((await job()).stderr).toContain('[nightly] started')
    expect((await job()).stderr).toContain('[nightly] resumed')
    expect(ran(path)).toHaveLength(4)
  })

  it('names several runs of a script after the first, and resumes all of them', async () => {
    const twice = `${script(3, 1)}\nconst more = await Runners.runTask([work.task(7, { id: 'extra' })])\nconsole.log(more.size)`
    const { path, options } = project({ 'twice.ts': twice })
    await manyworlds(['run', 'twice.ts', '--run-id', 'a'], options)
    expect(RunFile.list({ store: path('.manyworlds/runs') })).toEqual(['a', 'a-2'])
    const second = await manyworlds(['run', 'twice.ts', '--resume', 'a-2'], options)
    expect(second).toMatchObject({ code: 2, stderr: expect.stringContaining('--resume a\n') })
    expect((await manyworlds(['run', 'twice.ts', '--resume', 'a'], options)).code).toBe(0)
    expect(ran(path)).toHaveLength(4)
  })

  it('prints nothing but JSON on stdout with --json', async () => {
    const { options } = project({ 'bad.ts': script(5, 1, [2]) })
    const ended = await manyworlds(['run', 'bad.ts', '--json', '--run-id', 'r'], options)
    const events = ended.stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line))
    expect(events[0]).toMatchObject({ type: 'start', runId: 'r', total: 5 })
    expect(events.filter(({ type }) => type === 'response')).toHaveLength(5)
    expect(events.find(({ id }) => id === 't2')).toMatchObject({ status: 'failed', error: { code: 'TASK_THREW' } })
    expect(events.at(-1)).toMatchObject({ type: 'summary', state: 'finished', counts: { success: 4, failed: 1 } })
    expect(ended.stderr).toContain('the script got 5')
    expect(ended.code).toBe(1)
  })

  it('is quiet with --quiet, says only how it ended with --no-progress, and leaves no file with --no-store', async () => {
    const { path, options } = project({ 'good.ts': script(3, 1) })
    expect(await manyworlds(['run', 'good.ts', '-q', '--no-store'], options)).toMatchObject({ code: 0, stderr: '' })
    expect(existsSync(path('.manyworlds'))).toBe(false)
    const { stderr } = await manyworlds(['run', 'good.ts', '--no-progress'], options)
    expect(stderr).toMatch(/^run \S+ finished/)
  })

  it('leaves the exit code of the script as it is, and reports its errors', { timeout: 240_000 }, async () => {
    const { options } = project({
      'exits.ts': `${script(2, 1)}\nprocess.exit(7)`,
      'exits-badly.ts': `${script(2, 1, [1])}\nprocess.exit(0)`,
      'throws.ts': `throw new TypeError('not today')`,
      'mistake.ts': `import { Runners } from 'manyworlds'\nawait Runners.runTask([], { wrokers: 3 } as never)`,
      'mistake-in-main.ts': `import { Runners } from 'manyworlds'\nasync function main() { await Runners.runTask([], { wrokers: 3 } as never) }\nmain()`,
      'broken.ts': `const = 5`,
      'hangs.ts': `await new Promise(() => {})`,
      'sync.ts': script(3, 1, [1]).replace('await Runners.runTask', 'Runners.syncRunTask'),
      'main.ts': script(3, 1, [1]).replace('const results = await', 'const results = { size: 3 }; void'),
      'empty.ts': '',
      'leaves.ts': 'process.exit(0)',
      'no-tasks.ts': `import { Runners } from 'manyworlds'\nconsole.log('got', (await Runners.runTask([])).size)`,
      'forgets.ts': `import { defineAgent, DistributedExecutor } from 'manyworlds'
        const a = defineAgent({ name: 'a', run: async (n: number) => n })
        const executor = new DistributedExecutor({ workerNum: 1 })
        executor.submitTask(a.task(1))
        console.log('got', (await executor.collectResults()).size)`,
      'exits-midway.ts': `${script(4, 60_000).replace('const results = await', 'const results = { size: 0 }; void')}\nsetTimeout(() => process.exit(0), 4000)`,
      'throws-midway.ts': script(40, 50)
        .replace(
          'const results = await Runners.runTask(',
          'const results = { size: 0 }; for await (const _ of Runners.streamTask(',
        )
        .replace('concurrency: 4 },\n)', "concurrency: 4, runId: 'left' },\n)) throw new Error('enough')"),
    })
    const run = (name: string) => manyworlds(['run', name], options)
    expect((await run('exits.ts')).code).toBe(7)
    expect((await run('exits-badly.ts')).code).toBe(1)
    expect(await run('throws.ts')).toMatchObject({ code: 1, stderr: expect.stringContaining('TypeError: not today') })
    const mistake = await run('mistake.ts')
    expect(mistake.stderr).toMatch(/^manyworlds: run configuration: unknown key 'wrokers'.*\[CONFIG_INVALID\]\n$/)
    expect(mistake.code).toBe(2)
    expect(await run('mistake-in-main.ts')).toEqual(mistake)
    expect((await run('broken.ts')).code).toBe(1)
    expect(await run('hangs.ts')).toMatchObject({ code: 1, stderr: expect.stringContaining('never settled') })
    expect(await run('sync.ts')).toMatchObject({ code: 1, stdout: 'the script got 3\n' })
    expect(await run('main.ts')).toMatchObject({ code: 1, stderr: expect.stringContaining('2 succeeded') })
    expect(await run('exits-midway.ts')).toMatchObject({ code: 1, stderr: expect.stringContaining('--resume') })
    expect(await run('forgets.ts')).toMatchObject({ code: 0, stdout: 'got 1\n' })
    const left = await run('throws-midway.ts')
    expect(left).toMatchObject({ code: 1, stderr: expect.stringContaining('Error: enough') })
    expect(left.stderr).toContain('run left interrupted')
    expect(await run('empty.ts')).toMatchObject({ code: 2, stderr: expect.stringContaining('empty.ts made no run') })
    expect(await run('leaves.ts')).toMatchObject({ code: 2, stderr: expect.stringContaining('made no run') })
    expect(await run('no-tasks.ts')).toMatchObject({ code: 0, stdout: 'got 0\n' })
    const quiet = await manyworlds(['run', 'empty.ts', '-q'], options)
    expect(quiet).toMatchObject({ code: 2, stderr: expect.stringContaining('made no run') })
  })

  it('refuses what makes no sense before the script begins', async () => {
    const { path, options } = project({ 'good.ts': script(3, 1) })
    const refused = async (words: string[], text: string | RegExp) => {
      const ended = await manyworlds(['run', ...words], options)
      expect(ended.stderr).toMatch(text)
      expect(ended.code).toBe(2)
      expect(ended.stdout).toBe('')
    }
    await refused(['nothing.ts'], 'script not found: nothing.ts')
    await refused(['good.ts', '--resume', 'nothing'], /no runs in .*\[RUN_NOT_FOUND\]/)
    await refused(['good.ts', '--resume', 'auto'], '--run-id')
    await refused(['good.ts', '--in-local'], /--in-local can only be used with --engine ray or --engine spark/)
    await refused(['good.ts', '--in-local', '--engine', 'local'], '--in-local can only be used with')
    await refused(['good.ts', '--env', 'NOT_SET_ANYWHERE'], 'the environment variable NOT_SET_ANYWHERE is not set')
    await refused(['good.ts', '--env', 'MY-NAME'], '--env takes NAME or NAME=VALUE')
    await refused(['good.ts', '--env', 'MY_API_KEY=abc'], /--env MY_API_KEY=… contains a secret/)
    expect(existsSync(path('ledger.txt'))).toBe(false)
  })

  it('gives workers the variables that --env names, and keeps their values out of the store and the printed words', async () => {
    const { path, options } = project({ 'env.ts': ENV_SCRIPT })
    const env = { ...options.env, OPENAI_API_KEY: 'sk-not-for-the-store', DEPTH: '3' }
    const run = (...words: string[]) => manyworlds(['run', 'env.ts', '--run-id', 'r', ...words], { ...options, env })
    expect((await run('--no-store')).stdout).toBe('[null,"3","of the script","of the script"]\n')
    const ended = await run('--env', 'OPENAI_API_KEY', '--env=DEPTH=four=4', '--env', 'LEVEL=')
    expect(ended.stdout).toBe('["sk-not-for-the-store","four=4","","of the script"]\n')
    expect(ended.code, 'one task fails').toBe(1)
    for (const secret of ['sk-not-for-the-store', 'four=4']) {
      expect(ended.stderr).not.toContain(secret)
      expect(readFileSync(path('.manyworlds/runs/store.sqlite')).includes(secret), secret).toBe(false)
    }
  })

  it('says in one line that a task was edited', async () => {
    const { path, options } = project({
      'old.ts': script(3, 1),
      'new.ts': script(3, 1).replace('work.task(n,', 'work.task(n + 1,'),
    })
    await manyworlds(['run', 'old.ts', '--run-id', 'r', '-q'], options)
    const ended = await manyworlds(['run', 'new.ts', '--resume', 'r', '-q'], options)
    expect(ended.stderr).toMatch(
      /^manyworlds: task 't0' has changed since the run started. Its input differs: it was 0 and is now 1\. .*\[RESUME_MISMATCH\]\n$/,
    )
    expect(ended.code).toBe(2)
    expect(ran(path)).toHaveLength(3)
  })
})

describe('a run whose file is not where runs are looked for', () => {
  it('is found again by the commands that are printed', async () => {
    const own = script(4, 1, [2]).replace('concurrency: 4 }', `concurrency: 4, store: 'elsewhere', runId: 'own' }`)
    const { path, options } = project({ 'own.ts': own })
    const { stderr } = await manyworlds(['run', 'own.ts'], options)
    const [, words] = / (show elsewhere\/own t2)$/m.exec(stderr)!
    expect((await manyworlds(words!.split(' '), options)).stdout).toContain('bad luck with 2')
    expect((await manyworlds(['show', 'own', '--dir', 'elsewhere'], options)).stdout).toMatch(/^run own finished/)
    const resumed = await manyworlds(['run', 'own.ts', '--resume', 'elsewhere/own'], options)
    expect(resumed.stderr).toMatch(/restored +4/)
    expect(existsSync(path('.manyworlds'))).toBe(false)
    copyFileSync(path('elsewhere/store.sqlite'), path('elsewhere/copy.sqlite'))
    await manyworlds(['run', 'own.ts', '--resume', 'elsewhere/copy.sqlite', '--retry-failed', '-q'], options)
    using copy = RunFile.open(path('elsewhere/copy.sqlite'))
    using original = RunFile.open(path('elsewhere/own'))
    expect([copy.overview().sessions, original.overview().sessions]).toEqual([3, 2])
  })
})

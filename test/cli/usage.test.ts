import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { rmSpec } from '../../dist/cli/commands/rm/spec.js'
import { runSpec } from '../../dist/cli/commands/run/spec.js'
import { parse } from '../../dist/cli/frame/parse.js'
import { runScript } from '../support/run-script.ts'
import { MAIN, manyworlds, newFolder } from './manyworlds.ts'

const DIST = new URL('../../dist/', import.meta.url)

/** What is typed after `manyworlds`, and what is said about it. */
const MISTAKES: Readonly<Record<string, string>> = {
  rnu: 'unknown command "rnu"; did you mean "run"?',
  dcotor: 'unknown command "dcotor"; did you mean "doctor"?',
  list: 'unknown command "list"; commands: run, train, runs, trainings, show, tail, view, compare, regrade, rm, export, import, export-run, import-run, models, rollout-server, node, nodes, doctor, setup, init, completion, help',
  'help rnu': 'unknown command "rnu"; did you mean "run"?',
  '--json runs': 'unknown option "--json"; options come after a command: manyworlds COMMAND --json',
  'run a.ts --wrokers 3': 'unknown option "--wrokers"; did you mean "--workers"?',
  'run a.ts --maxAttempts 3': 'unknown option "--maxAttempts"; did you mean "--max-attempts"?',
  'run a.ts --timeout-ms 3': 'unknown option "--timeout-ms"; did you mean "--timeout"?',
  'run a.ts --no-stroe': 'unknown option "--no-stroe"; did you mean "--no-store"?',
  'run a.ts --parallelism 3': 'unknown option "--parallelism"; did you mean "--workers"?',
  'run a.ts --retries 3': 'unknown option "--retries"; did you mean "--max-attempts"?',
  'run a.ts --bananas': 'unknown option "--bananas"',
  'run a.ts -x': 'unknown option "-x"',
  'run a.ts -qx': 'unknown option "-x"',
  run: 'SCRIPT is missing',
  'run a.ts b.ts': 'unexpected argument "b.ts"; put arguments for the script after "--"',
  'run a.ts --workers': '--workers needs a value: --workers N',
  'run a.ts --workers --json':
    '--workers needs a value: --workers N; write a value that starts with "-" as --workers=--json',
  'run a.ts --run-id=': '--run-id needs a value; it is empty',
  'run a.ts -w many': '-w: "many" is not a whole number',
  'run a.ts -w 2.5': '-w: "2.5" is not a whole number',
  'run a.ts -w 0': '-w must be at least 1, not 0',
  'run a.ts --engine rya': '--engine must be one of local, nodes, ray, spark, inline, not "rya"; did you mean "ray"?',
  'run a.ts --timeout 30':
    '--timeout: "30" is not a duration such as 30s, 2m, 500ms or 1h30m; 30 of what? "30s" or "30ms"?',
  'run a.ts --timeout soon': '--timeout: "soon" is not a duration such as 30s, 2m, 500ms or 1h30m',
  'run a.ts --timeout 30s1': '--timeout: "30s1" is not a duration such as 30s, 2m, 500ms or 1h30m',
  'run a.ts --json=yes': '--json takes no value; leave "=yes" out',
  'run a.ts --no-store --resume x': '--resume and --no-store exclude each other',
  'run a.ts --retry-failed': '--retry-failed can only be used with --resume',
  'run a.ts --model small': '--model "small": write NAME=OTHER, NAME=URL#MODEL or NAME={…}',
  'run a.ts --model =big': '--model "=big": write NAME=OTHER, NAME=URL#MODEL or NAME={…}',
  'run a.ts --model small=': '--model "small=": write NAME=OTHER, NAME=URL#MODEL or NAME={…}',
  'run a.ts --model sm*ll=big': `--model "sm*ll=big": a name must have 1 to 64 letters, digits, '-', '_' or '.'`,
  'run a.ts --model small=b/g': '--model "small=b/g": "b/g" is not a name, URL#MODEL or {…}',
  'run a.ts --model small=http://gpu1:8000/v1':
    '--model small=http://gpu1:8000/v1: which model of that server? Write small=URL#MODEL',
  'run a.ts --model small={"model":1': `--model small={…} is not JSON: line 1, column 11: expected ',' or '}', found the end`,
  'run a.ts --model small={"headers":{"Authorization":"x"}}': `--model small=… contains a secret, which every user of this machine could see; put it into a variable and write \${NAME} in its place, or \`apiKeyEnv\``,
  'run a.ts --model a=b --model a=c': '--model defines "a" twice',
  train: 'FILE is missing',
  'train a.ts --epochs 0': '--epochs must be at least 1, not 0',
  'train a.ts --epoch 3': 'unknown option "--epoch"; did you mean "--epochs"?',
  'train a.ts --no-store --resume x': '--resume and --no-store exclude each other',
  'train a.ts --spark-master local[2]': '--spark-master can only be used with --in-local',
  'models --model': '--model needs a value: --model NAME=…',
  'models --timeout 5': '--timeout: "5" is not a duration such as 30s, 2m, 500ms or 1h30m; 5 of what? "5s" or "5ms"?',
  show: 'RUN is missing',
  rm: 'RUN is missing, or --older-than, or --cache',
  completion: 'SHELL is missing: bash, zsh, fish',
  'completion zhs': 'SHELL must be one of bash, zsh, fish, not "zhs"; did you mean "zsh"?',
  'doctor now': 'unexpected argument "now"',
}

describe('a mistake on the command line', () => {
  it.each(Object.entries(MISTAKES))('manyworlds %s', async (typed, message) => {
    const words = typed.split(' ')
    const { code, stdout, stderr } = await manyworlds(words)
    const page = /unknown (command|option "--json")/.test(message) && words[0] !== 'help' ? 'help' : `help ${words[0]}`
    const [first, hint, ...more] = stderr.split('\n')
    expect(first).toBe(`manyworlds: ${message}`)
    // How the program is called depends on where it is, and on who called it.
    expect(hint).toMatch(new RegExp(`(manyworlds|main\\.js) ${page}\` for usage$`))
    expect(more).toEqual([''])
    expect(stdout).toBe('')
    expect(code).toBe(2)
  })

  it('may be a forgotten "run"', async () => {
    const folder = newFolder()
    writeFileSync(join(folder, 'agents.ts'), '')
    const { code, stderr } = await manyworlds(['agents.ts'], { cwd: folder })
    expect(code).toBe(2)
    expect(stderr).toContain('unknown command "agents.ts"; to run that file: manyworlds run agents.ts')
  })
})

describe('what is typed', () => {
  const run = (line: string) => parse(runSpec, line.split(' '))

  it('arrives as numbers, milliseconds and words', () => {
    expect(
      run('a.ts -w8 --concurrency=4 --timeout 1h30m --deadline 500ms --seed -5 --engine ray -q --no-progress'),
    ).toMatchObject({
      args: {
        script: 'a.ts',
        scriptArgs: [],
        workers: 8,
        concurrency: 4,
        timeout: 5_400_000,
        deadline: 500,
        seed: -5,
        engine: 'ray',
        quiet: true,
        noProgress: true,
        json: false,
        grace: 10_000,
        resume: undefined,
      },
    })
    expect(parse(rmSpec, ['a', 'b', '--older-than', '1.5d'])).toMatchObject({
      args: { runs: ['a', 'b'], olderThan: 129_600_000 },
    })
    expect(parse(rmSpec, ['--older-than', '7d'])).toMatchObject({ args: { runs: [] } })
  })

  it('goes to the script, all of it, after --', () => {
    expect(run('a.ts --json -- --json -x b.ts -- c')).toMatchObject({
      args: { script: 'a.ts', json: true, scriptArgs: ['--json', '-x', 'b.ts', '--', 'c'] },
    })
  })
})

describe('an error that a command throws', () => {
  const report = (error: string) =>
    runScript(undefined, {
      flags: ['--input-type=module', '--eval'],
      args: [
        `import { ManyworldsError } from '${new URL('index.js', DIST)}'
         import { reportError } from '${new URL('cli/frame/error-report.js', DIST)}'
         import { UsageError } from '${new URL('cli/frame/usage-error.js', DIST)}'
         process.exitCode = reportError(${error}, 'show')`,
      ],
    })

  it('is one line with its code, if it is one of ours', async () => {
    const full = await report(`new ManyworldsError('STORE_FULL', 'the disk is full')`)
    expect(full).toEqual({ code: 1, stdout: '', stderr: 'manyworlds: the disk is full [STORE_FULL]\n' })
    const typed = await report(`new ManyworldsError('RUN_NOT_FOUND', 'there is no run x')`)
    expect(typed).toEqual({ code: 2, stdout: '', stderr: 'manyworlds: there is no run x [RUN_NOT_FOUND]\n' })
    for (const code of ['MODEL_NO_PRICE', 'TASK_DUPLICATE_ID', 'DEPENDENCY_CYCLE', 'DEPENDENCY_UNKNOWN'])
      expect(await report(`new ManyworldsError('${code}', 'no')`)).toMatchObject({ code: 2 })
    const usage = await report(`new UsageError('there is no task x')`)
    expect(usage).toEqual({
      code: 2,
      stdout: '',
      stderr: expect.stringMatching(/^manyworlds: there is no task x\n.* help show` for usage\n$/),
    })
  })

  it('has its stack and its cause, if nobody expected it', async () => {
    const { code, stderr } = await report(`new TypeError('surprise', { cause: new Error('deep down') })`)
    expect(code).toBe(1)
    expect(stderr).toMatch(/^manyworlds: TypeError: surprise\n {4}at /)
    expect(stderr).toContain('deep down')
  })
})

describe('an output that takes nothing', () => {
  it('ends the program without a word, if its reader has gone', () => {
    // The reader goes before the program begins.
    const line = `{ sleep 1; '${process.execPath}' '${MAIN}' help run; echo "exit $?" >&2; } | { exec 0<&-; sleep 2; }`
    const { stderr } = spawnSync('bash', ['-c', line], { encoding: 'utf8' })
    expect(stderr).toBe('exit 141\n')
  })
  it.skipIf(process.platform !== 'linux')('is an error of one line, if the disk is full', () => {
    const { stderr } = spawnSync(
      'bash',
      ['-c', `'${process.execPath}' '${MAIN}' help run > /dev/full; echo "exit $?" >&2`],
      {
        encoding: 'utf8',
      },
    )
    expect(stderr).toMatch(/^manyworlds: cannot write the output: ENOSPC.*\nexit 1\n$/)
  })
})

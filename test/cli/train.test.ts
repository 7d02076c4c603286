import { readdirSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { printed } from '../support/run-script.ts'
import { inBackground } from './background.ts'
import { manyworlds } from './manyworlds.ts'
import { exportsIt, HEAD, trainingProject, trains } from './train-project.ts'

const PERCENT = String.raw`\d+\.\d % \[\d+\.\d, \d+\.\d\]`

const ENDLESS = `import { defineEnvironment, stepAgent } from 'manyworlds/agents'
import { DistributedTrainingPipeline, softmaxPolicy } from 'manyworlds/train'
const environment = defineEnvironment({
  name: 'endless',
  reset: ({ input }: { input: number }) => ({ state: input, observation: input, candidates: ['a', 'b'] }),
  step: async () => {
    console.log('a step begins')
    return new Promise<never>(() => setInterval(() => {}, 1000))
  },
})
const agent = stepAgent({ name: 'patient', environment, policy: softmaxPolicy({ name: 'any' }) })
const tasks = Array.from({ length: 20 }, (_, input) => ({ input }))
export default new DistributedTrainingPipeline({ agent, tasks, workerNum: 1 })
`

describe('manyworlds train', { timeout: 240_000 }, () => {
  it('trains what a file exports, says how it goes and how it went', async () => {
    const { options, training } = trainingProject({ 'a.ts': exportsIt() })
    const ended = await manyworlds(['train', 'a.ts', '--run-id', 'first'], options)
    expect(ended, ended.stderr).toMatchObject({ code: 0, stdout: '' })
    const { digest, ...stored } = training('first')
    expect(stored).toEqual({ seed: 5, ending: 'finished', sessions: 1, updates: 4, epochs: 2 })
    expect(ended.stderr).toMatch(/^\[first\] started: \d+ tasks, \d+ for validation, \d+ for the test; on local, 2 wor/)
    expect(ended.stderr).toMatch(
      new RegExp(`^\\[first\\] \\d+:\\d\\d  epoch 2/2: 4 updates, .*; test ${PERCENT}$`, 'm'),
    )
    expect(ended.stderr).toMatch(/^training first finished in \d+:\d\d: 2 epochs, 4 updates, 64 episodes/m)
    expect(ended.stderr).toMatch(new RegExp(`^test +${PERCENT}`, 'm'))
    expect(ended.stderr).toMatch(new RegExp(`^best +version \\d: ${PERCENT} on validation$`, 'm'))
    expect(ended.stderr).toMatch(new RegExp(`^digest +${digest}$`, 'm'))
    expect(ended.stderr).toMatch(/manyworlds.*show first$|main\.js show first$/m)
    expect(ended.stderr).toMatch(/export first --policy FOLDER$/m)
  })

  it('has what was typed go over what the script says, also where the script trains by itself', async () => {
    const { options, training, path } = trainingProject({ 'a.ts': trains(), 'b.ts': exportsIt() })
    const typed = '--seed 7 --epochs 3 --tasks-per-epoch 4 --rollouts 3 -w 1 -c 5 --store here --quiet'.split(' ')
    const ended = await manyworlds(['train', 'a.ts', ...typed, '--run-id', 'a'], options)
    expect(ended, ended.stderr).toMatchObject({ code: 0, stderr: '' })
    expect(ended.stdout).toMatch(/^epoch 1 \w{64}\nepoch 2 \w{64}\nepoch 3 \w{64}\n$/)
    expect(training('a', 'here')).toMatchObject({ seed: 7, updates: 3, epochs: 3 })
    expect(await manyworlds(['train', path('b.ts'), ...typed, '--run-id', 'b'], options)).toMatchObject({ code: 0 })
    // The same seed and the same tasks give the same curve, whoever calls.
    expect(training('b', 'here').digest).toBe(training('a', 'here').digest)
  })

  it('overlaps collecting and learning with --overlap, which belongs to the training', async () => {
    const { options } = trainingProject({ 'a.ts': exportsIt() })
    const overlapped = await manyworlds(
      ['train', 'a.ts', '--overlap', '--store', 'here', '--run-id', 'o', '-q'],
      options,
    )
    expect(overlapped.code, overlapped.stderr).toBe(0)
    const shown = await manyworlds(['show', 'o', '--store', 'here', '--json'], options)
    expect(JSON.parse(shown.stdout).config).toMatchObject({ overlap: { maxStaleness: 1 } })
    const without = await manyworlds(
      ['train', 'a.ts', '--resume', 'o', '--dir', 'here', '--epochs', '3', '-q'],
      options,
    )
    expect(without).toMatchObject({ code: 2, stderr: expect.stringContaining('overlap') })
    const again = await manyworlds(
      ['train', 'a.ts', '--resume', 'o', '--dir', 'here', '--epochs', '3', '--overlap', '-q'],
      options,
    )
    expect(again.code, again.stderr).toBe(0)
  })

  it('goes on with a training: the last one, one by name, or by --resume auto', async () => {
    const { options, training, trainings } = trainingProject({ 'a.ts': exportsIt() })
    const train = (...words: string[]) => manyworlds(['train', 'a.ts', '-q', ...words], options)
    expect((await train('--run-id', 'nightly', '--resume', 'auto')).code).toBe(0)
    expect((await train('--resume', 'last', '--epochs', '3')).code).toBe(0)
    expect((await train('--resume', 'night', '--epochs', '4')).code).toBe(0)
    expect((await train('--run-id', 'nightly', '--resume', 'auto', '--epochs', '5')).code).toBe(0)
    expect(trainings()).toEqual(['nightly'])
    expect(training('nightly')).toMatchObject({ sessions: 4, epochs: 5 })
    const other = await train('--resume', 'other')
    expect(other.code).toBe(2)
    expect(other.stderr).toContain("no training 'other'")
    expect(other.stderr).toContain('the latest are nightly')
    const taken = await train('--run-id', 'nightly')
    expect(taken.code).toBe(2)
    expect(taken.stderr).toContain('[RUN_EXISTS]')
    const changed = await train('--resume', 'nightly', '--seed', '9')
    expect(changed.code).toBe(2)
    expect(changed.stderr).toContain('seed: 5 before, 9 now')
  })

  it('prints lines of JSON, one for each update, evaluation and epoch, and nothing else on stdout', async () => {
    const { options, training } = trainingProject({ 'a.ts': trains() })
    const ended = await manyworlds(['train', 'a.ts', '--json', '--run-id', 'a'], options)
    expect(ended.code).toBe(0)
    const lines = printed(ended) as { type: string; training: string; at: number }[]
    expect(lines.every(({ training, at }) => training === 'a' && at > 1e12)).toBe(true)
    const types = lines.map(({ type }) => type)
    // Validation before the first update and after each epoch; then the test, with the first version and the best.
    expect(types.slice(0, 8)).toEqual('start evaluation update update evaluation epoch update update'.split(' '))
    expect(types.slice(-2)).toEqual(['epoch', 'summary'])
    expect(lines.filter(({ type }) => type === 'update')).toMatchObject([0, 1, 2, 3].map((number) => ({ number })))
    expect(lines.at(-1)).toMatchObject({ state: 'finished', digest: training('a').digest, updates: 4, test: {} })
    expect(ended.stderr).toMatch(/^epoch 1 /)
  })

  it('writes event files for TensorBoard with --log, and refuses what it does not know', async () => {
    const { path, options } = trainingProject({ 'a.ts': exportsIt() })
    const ended = await manyworlds(['train', 'a.ts', '-q', '--run-id', 'a', '--log', 'tensorboard:board'], options)
    expect(ended.code, ended.stderr).toBe(0)
    const files = readdirSync(path('board'), { recursive: true }).map(String)
    expect(files).toContainEqual(expect.stringMatching(/^a\/events\.out\.tfevents\./))
    const unknown = await manyworlds(['train', 'a.ts', '--log', 'tensorbored'], options)
    expect(unknown).toMatchObject({ code: 2, stderr: expect.stringContaining("it is 'tensorbored'") })
  })

  it('refuses a file that trains nothing, and one that is not there', async () => {
    const { options, isStored } = trainingProject({
      'none.ts': 'export const answer = 42',
      'exits.ts': 'process.exit(0)',
      'runs.ts': `import { defineAgent, Runners } from 'manyworlds'
        const echo = defineAgent({ name: 'echo', run: (n: number) => n })
        await Runners.runTask([echo.task(1)], { workerNum: 1, store: false })`,
      'several.ts': `${HEAD}
        export const one = new DistributedTrainingPipeline({ ...settings, tasks: lightsTasks(40) })
        export const two = new DistributedTrainingPipeline({ ...settings, tasks: lightsTasks(40) })`,
    })
    const train = (file: string) => manyworlds(['train', file], options)
    const none = 'made no training: it neither trains a DistributedTrainingPipeline nor exports one'
    expect(await train('none.ts')).toMatchObject({ code: 2, stderr: expect.stringContaining(`none.ts ${none}`) })
    expect(await train('exits.ts')).toMatchObject({ code: 2, stderr: expect.stringContaining(none) })
    expect((await train('runs.ts')).stderr).toContain('use `manyworlds run` for runs')
    expect((await train('several.ts')).stderr).toContain('exports several trainings: one, two')
    expect(await train('gone.ts')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('script not found: gone'),
    })
    expect(isStored()).toBe(false)
  })

  it('leaves 1, and says once what went wrong, when the training fails', async () => {
    const { options, training } = trainingProject({
      'a.ts': exportsIt(0, "tasks: lightsTasks(40, { fails: 'always' })"),
    })
    const ended = await manyworlds(['train', 'a.ts', '--run-id', 'a'], options)
    expect(ended.code).toBe(1)
    expect(ended.stderr.split('the street is closed').length - 1, ended.stderr).toBe(1)
    expect(ended.stderr).toMatch(/^training a failed after/m)
    expect(training('a')).toMatchObject({ ending: 'failed' })
  })

  it('stops gracefully at Ctrl-C, and the command that it prints goes on to the same curve', async () => {
    const { path, options, training } = trainingProject({ 'a.ts': exportsIt(100, 'epochs: 5') })
    const undisturbed = await manyworlds(['train', 'a.ts', '--run-id', 'whole', '-q'], options)
    expect(undisturbed.code).toBe(0)
    const stopped = inBackground(['train', 'a.ts', '--run-id', 'cut'], { cwd: path(''), env: options.env })
    // Four epochs are left, also if this process is held up for a while.
    await expect.poll(stopped.output, { timeout: 60_000, interval: 20 }).toContain('epoch 1/5')
    stopped.child.kill('SIGINT')
    expect(await stopped.exited).toBe(130)
    expect(stopped.output()).toContain('training cut interrupted')
    expect(training('cut')).toMatchObject({ ending: 'interrupted', sessions: 1 })
    const [, words] = /Resume with:\n {2}.*(?:manyworlds|main\.js) (train .*)\n/.exec(stopped.output())!
    expect(words).toBe('train a.ts --resume cut')
    const ended = await manyworlds(words!.split(' '), options)
    expect(ended.code, ended.stderr).toBe(0)
    expect(ended.stderr).toMatch(/^\[cut\] resumed after \d updates?/)
    const { updates, digest } = training('whole')
    expect(training('cut')).toMatchObject({ epochs: 5, updates, digest })
  })

  it('stops at once at the second Ctrl-C', async () => {
    const { path, options, training } = trainingProject({ 'a.ts': ENDLESS })
    // Whoever waited for the running tasks would wait for five minutes.
    const words = ['train', 'a.ts', '--run-id', 'a', '--show-logs', '--grace', '5m']
    const stopped = inBackground(words, { cwd: path(''), env: options.env })
    await expect.poll(stopped.output, { timeout: 60_000 }).toContain('a step begins')
    stopped.child.kill('SIGINT')
    await expect
      .poll(stopped.output, { timeout: 60_000 })
      .toMatch(/stopping: no new tasks are started; \d+ tasks are running/)
    const asked = Date.now()
    stopped.child.kill('SIGINT')
    expect(await stopped.exited).toBe(130)
    expect(Date.now() - asked).toBeLessThan(60_000)
    expect(stopped.output()).toContain('train a.ts --show-logs --grace 5m --resume a')
    expect(training('a')).toMatchObject({ updates: 0 })
  })
})

describe('manyworlds train of a file that exports a sweep', { timeout: 240_000 }, () => {
  const sweeps = (delayMs = 0) => `${HEAD}
    const pipeline = new DistributedTrainingPipeline({ ...settings, tasks: lightsTasks(40, { delayMs: ${delayMs} }), epochs: 1 })
    export default pipeline.sweep({ lr: [0.1, 0.5], seeds: 2 })`

  it('prints a table of its points, and a line for each training', async () => {
    const { options, trainings } = trainingProject({ 'a.ts': sweeps() })
    const ended = await manyworlds(['train', 'a.ts', '--run-id', 'hunt'], options)
    expect(ended.code, ended.stderr).toBe(0)
    expect(trainings()).toEqual(['hunt.lr0.1.seed5', 'hunt.lr0.1.seed6', 'hunt.lr0.5.seed5', 'hunt.lr0.5.seed6'])
    expect(ended.stderr.match(/^training hunt\.lr\S+ finished in .*; validation .*; test .*$/gm)).toHaveLength(4)
    const [head, titles, first, second] = ended.stdout.split('\n')
    expect(head).toBe('sweep hunt: 4 trainings')
    expect(titles).toMatch(/^point +seeds +validation +test/)
    expect(first).toMatch(new RegExp(`^lr0\\.1 +2  ${PERCENT} +${PERCENT}`))
    expect(second).toMatch(/^lr0\.5 +2 /)
    expect(ended.stdout.match(/best by validation/g)).toHaveLength(1)
    const json = await manyworlds(['train', 'a.ts', '--resume', 'hunt', '--json'], options)
    expect(json.code, json.stderr).toBe(0)
    expect(printed(json)).toMatchObject([{ type: 'sweep', sweep: 'hunt', trainings: 4, restored: 4 }])
    const shown = await manyworlds(['show', 'hunt'], options)
    expect(shown.code, shown.stderr).toBe(0)
    expect(shown.stdout).toMatch(/^sweep hunt: 4 trainings\ntraining +status .*\nhunt\.lr0\.1\.seed5 +finished /)
    expect(shown.stdout.match(/^hunt\.lr/gm)).toHaveLength(4)
    const lines = printed(await manyworlds(['show', 'hunt', '--json'], options))
    expect(lines.map((line) => (line as { id: string }).id)).toEqual(trainings())
    expect((await manyworlds(['show', 'hunt.lr0.1.seed6'], options)).stdout).toContain('hunt.lr0.1.seed6')
  })

  it('stops at Ctrl-C, and goes on as one thing', async () => {
    const { path, options, trainings } = trainingProject({ 'a.ts': sweeps(200) })
    const stopped = inBackground(['train', 'a.ts', '--run-id', 'hunt'], { cwd: path(''), env: options.env })
    await expect.poll(stopped.output, { timeout: 90_000, interval: 20 }).toContain('[hunt.lr0.1.seed6] started')
    stopped.child.kill('SIGINT')
    expect(await stopped.exited).toBe(130)
    expect(stopped.output()).toMatch(/train a\.ts --resume hunt\n/)
    expect(trainings()).toHaveLength(2)
    const ended = await manyworlds(['train', 'a.ts', '--resume', 'last', '--no-progress'], options)
    expect(ended.code, ended.stderr).toBe(0)
    expect(ended.stdout).toContain('sweep hunt: 4 trainings, 1 of them finished in earlier sessions')
    expect(trainings()).toHaveLength(4)
  })
})

describe('manyworlds run of a script that trains', { timeout: 240_000 }, () => {
  it('shows the training, and goes on with it', async () => {
    const { options, training } = trainingProject({ 'a.ts': trains() })
    const ended = await manyworlds(['run', 'a.ts', '--run-id', 'a', '--seed', '3'], options)
    expect(ended.code, ended.stderr).toBe(0)
    expect(ended.stderr).toContain('training a finished')
    expect(ended.stderr).not.toContain('made no run')
    expect(training('a')).toMatchObject({ seed: 3, updates: 4 })
    const again = await manyworlds(['run', 'a.ts', '--resume', 'a', '--seed', '3'], options)
    expect(again.code, again.stderr).toBe(0)
    expect(training('a')).toMatchObject({ sessions: 2, updates: 4 })
  })

  it('refuses options that a training has no use for', async () => {
    const { options } = trainingProject({ 'a.ts': trains() })
    const ended = await manyworlds(['run', 'a.ts', '--deadline', '1h'], options)
    expect(ended.code).toBe(2)
    expect(ended.stderr).toContain('`deadlineMs` is not an option of trainings')
  })
})

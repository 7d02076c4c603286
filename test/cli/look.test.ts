import { spawn } from 'node:child_process'
import { existsSync, writeFileSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { RunFile } from 'manyworlds/runs'
import { describe, expect, it, onTestFinished } from 'vitest'
import { MAIN, manyworlds } from './manyworlds.ts'
import { project, script } from './project.ts'

async function twoRuns() {
  const { path, options } = project({ 'good.ts': script(3, 1), 'bad.ts': script(30, 1, [4]) })
  await manyworlds(['run', 'good.ts', '--run-id', 'good', '-q'], options)
  await manyworlds(['run', 'bad.ts', '--run-id', 'bad', '-q'], options)
  return { path, options, runs: () => RunFile.list({ store: path('.manyworlds/runs') }) }
}

describe('manyworlds runs', () => {
  it('lists runs, the newest first, with status and success; one that cannot be read too', async () => {
    const { options, path } = await twoRuns()
    const listed = await manyworlds(['runs'], options)
    const [head, bad, good] = listed.stdout.split('\n')
    expect(head).toMatch(/^run +status +started +took +tasks +ok +failed/)
    expect(bad).toMatch(/^bad +finished .* 30 +96.7% +1 /)
    expect(good).toMatch(/^good +finished .* 3 +100% +0 /)
    expect((await manyworlds(['runs', '--limit', '1'], options)).stdout.trimEnd().split('\n')).toHaveLength(2)
    const json = (await manyworlds(['runs', '--json'], options)).stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line))
    expect(json).toMatchObject([
      { runId: 'bad', counts: { success: 29, failed: 1 } },
      { runId: 'good', total: 3 },
    ])
    writeFileSync(path('.manyworlds/runs/broken.sqlite'), 'not a database at all, but long enough')
    const broken = await manyworlds(['runs'], options)
    expect(broken.stdout).toMatch(/^broken +unreadable/m)
    expect(broken.code).toBe(1)
  })

  it('says that there are none', async () => {
    const { options } = project({})
    expect(await manyworlds(['runs'], options)).toMatchObject({
      code: 0,
      stdout: '',
      stderr: expect.stringContaining('no runs in'),
    })
  })
})

describe('manyworlds show', () => {
  it('shows a run: counts, failures, times, tasks', async () => {
    const { options } = await twoRuns()
    const { stdout, code } = await manyworlds(['show', 'bad'], options)
    expect(code).toBe(0)
    expect(stdout).toMatch(/^run bad finished .*30 tasks/)
    expect(stdout).toMatch(/failures +1 {2}TASK_THREW {2}t4: bad luck with 4/)
    expect(stdout).toMatch(/^… and 10 more/m)
    const failed = await manyworlds(['show', 'bad', '--failed'], options)
    expect(failed.stdout.split('\n').filter((line) => line.startsWith('failed '))).toHaveLength(1)
    const all = await manyworlds(['show', 'bad', '--json'], options)
    expect(
      all.stdout
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line).id),
    ).toHaveLength(30)
  })

  it('shows a task step by step', async () => {
    const { options } = await twoRuns()
    const { stdout } = await manyworlds(['show', 'bad', 't4'], options)
    expect(stdout).toMatch(/^t4 +failed/)
    expect(stdout).toMatch(/1 step\n.*\n.*action: wait\n.*observation: 4/)
    expect(stdout).toContain('Error: bad luck with 4')
    const json = JSON.parse((await manyworlds(['show', 'last', 't5', '--json'], options)).stdout)
    expect(json).toMatchObject({ id: 't5', input: 5, status: 'success', attempts: [{ role: 'final' }] })
  })

  it('says what is there when a run or task is not', async () => {
    const { options } = await twoRuns()
    expect(await manyworlds(['show', 'ugly'], options)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('bad, good'),
    })
    expect(await manyworlds(['show', 'bad', 't44'], options)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("did you mean 't4'?"),
    })
  })
})

describe('manyworlds tail', () => {
  it('follows a run in another process to its end', async () => {
    const { path, options } = project({ 'long.ts': script(40, 100) })
    const running = spawn(process.execPath, [MAIN, 'run', 'long.ts', '--run-id', 'r', '-q'], {
      cwd: options.cwd,
      env: { ...process.env, ...options.env, VITEST: undefined },
    })
    onTestFinished(() => void running.kill('SIGKILL'))
    await expect.poll(() => existsSync(path('ledger.txt')), { timeout: 40_000 }).toBe(true)
    const ended = await manyworlds(['tail', 'r', '--from-start'], options)
    const lines = ended.stdout.trimEnd().split('\n')
    expect(lines).toHaveLength(40)
    for (const line of lines) expect(line).toMatch(/^success +t\d+ +[\d.]+ m?s +\{ n: \d+ \}$/)
    expect(ended.stderr).toBe('run r finished: 40 of 40 tasks, 40 succeeded\n')
    const again = await manyworlds(['tail', 'r', '--json'], options)
    expect(again).toMatchObject({ code: 0, stdout: '' })
  })
})

describe('manyworlds rm', () => {
  it('removes runs, and only those', async () => {
    const { options, runs } = await twoRuns()
    expect(await manyworlds(['rm', 'good'], options)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('--yes'),
    })
    expect((await manyworlds(['rm', 'good', '--dry-run'], options)).stdout).toBe('good\n')
    expect(runs()).toHaveLength(2)
    expect((await manyworlds(['rm', 'good', '--yes'], options)).code).toBe(0)
    expect(runs()).toEqual(['bad'])
    expect((await manyworlds(['rm', '--older-than', '1h', '--yes'], options)).stderr).toContain('nothing to remove')
    expect((await manyworlds(['rm', '--older-than', '1ms', '--yes'], options)).code).toBe(0)
    expect(runs()).toEqual([])
  })

  it('removes nothing that is not a run, or was not meant', async () => {
    const { path, options, runs } = await twoRuns()
    const refused = async (words: string[], text: string) => {
      const ended = await manyworlds(['rm', ...words, '--yes'], options)
      expect(ended.stderr).toContain(text)
      expect(ended.code).not.toBe(0)
    }
    writeFileSync(path('mine.sqlite'), '')
    const db = new DatabaseSync(path('.manyworlds/runs/mine.sqlite'))
    db.exec('CREATE TABLE mine (x)')
    db.close()
    await refused(['./package.json'], 'is not a run file')
    await refused([''], 'empty')
    await refused(['.manyworlds/runs'], 'is not a run file')
    await refused(['mine'], 'another SQLite database with the table `mine`')
    await refused(['good', '--older-than', '1ms'], 'not both')
    expect(runs().toSorted()).toEqual(['bad', 'good', 'mine'])
    expect(existsSync(path('package.json'))).toBe(true)
  })

  it('does not remove a run that is going on', async () => {
    const { path, options } = project({ 'long.ts': script(10, 60_000) })
    const running = spawn(process.execPath, [MAIN, 'run', 'long.ts', '--run-id', 'r', '-q'], {
      cwd: options.cwd,
      env: { ...process.env, ...options.env, VITEST: undefined },
    })
    onTestFinished(() => void running.kill('SIGKILL'))
    await expect.poll(() => existsSync(path('ledger.txt')), { timeout: 40_000 }).toBe(true)
    const ended = await manyworlds(['rm', 'r', '--yes'], options)
    expect(ended).toMatchObject({ code: 1, stderr: expect.stringContaining('is in progress') })
    expect(RunFile.list({ store: path('.manyworlds/runs') })).toEqual(['r'])
  })
})

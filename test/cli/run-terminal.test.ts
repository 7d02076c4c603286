import { readFileSync, writeFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { RunFile } from 'manyworlds/runs'
import { describe, expect, it } from 'vitest'
import { noTerminals, openTerminal } from '../terminal/terminal.ts'
import { MAIN } from './manyworlds.ts'
import { project, script } from './project.ts'

const PROGRESS = /\d+\/\d+ +\d+%/

/** `manyworlds run …` in a real terminal. */
function start(files: Readonly<Record<string, string>>, words: readonly string[], size = { cols: 100, rows: 30 }) {
  const { path, options } = project(files)
  const again = (more: readonly string[]) => openTerminal(process.execPath, [MAIN, ...more], { ...options, ...size })
  return { path, again, terminal: again(['run', ...words]) }
}

const overview = (path: (file: string) => string, runId: string) => {
  using run = RunFile.open(runId, { store: path('.manyworlds/runs') })
  return run.overview()
}
const progressLines = (screen: readonly string[]) => screen.filter((line) => PROGRESS.test(line))

describe.skipIf(noTerminals())('manyworlds run in a terminal', { timeout: 120_000 }, () => {
  it('shows one live line, below what the script prints, and the summary at the end', async () => {
    const talking = script(60, 100, [], 40).replace(
      'const results',
      `const talk = setInterval(() => console.log('the script says something'), 150)\nconst results`,
    )
    const { terminal, path } = start({ 'talk.ts': `${talking}\nclearInterval(talk)` }, ['talk.ts'])
    await terminal.waitFor(/\d\d\/60 .*running 8/)
    // The line makes way for a moment when something is printed.
    const seen = () => terminal.screen().filter((line) => line !== '')
    await expect.poll(() => [progressLines(seen()).length, PROGRESS.test(seen().at(-1)!)]).toEqual([1, true])
    writeFileSync(path('open'), '')
    expect(await terminal.exit).toBe(0)
    expect(progressLines(terminal.screen())).toEqual([])
    const said = terminal.screen().filter((line) => line.includes('says'))
    expect(said.length).toBeGreaterThan(2)
    for (const line of said) expect(line).toBe('the script says something')
    expect(terminal.screen().join('\n')).toMatch(/60 succeeded \(100%\)/)
  })

  it('keeps to one line when the terminal is made narrower and wider', async () => {
    const { terminal, path } = start({ 'long.ts': script(120, 150, [], 60) }, ['long.ts'])
    await terminal.waitFor(PROGRESS)
    for (const [cols, rows] of [
      [50, 20],
      [24, 20],
      [140, 30],
      [80, 24],
    ] as const) {
      terminal.resize(cols, rows)
      await sleep(500)
      const seen = () => terminal.screen().filter((line) => line !== '')
      const fits = () => [seen().filter((line) => line.includes('/120')).length, seen().at(-1)!.length < cols]
      await expect.poll(fits).toEqual([1, true])
    }
    writeFileSync(path('open'), '')
    expect(await terminal.exit).toBe(0)
  })

  it('stops gracefully with Ctrl-C: what runs may finish, what is finished is kept, and the printed command resumes', async () => {
    const words = ['job.ts', '--run-id', 'job', '--grace', '60s']
    const { terminal, path, again } = start({ 'job.ts': script(80, 200, [], 40) }, words, { cols: 200, rows: 30 })
    await terminal.waitFor(/[1-9]\d\/80/)
    terminal.ctrlC()
    await terminal.waitFor(/stopping: no new tasks are started; \d+ tasks are running/)
    writeFileSync(path('open'), '')
    expect(await terminal.exit).toBe(130)
    const screen = terminal.screen().join('\n')
    expect(screen).not.toContain('the script got')
    expect(screen).toMatch(/run job interrupted/)
    const [, command] = /Resume with:\s+.*(run job.ts.*--resume job)/.exec(screen)!
    const { status, counts } = overview(path, 'job')
    expect(status).toBe('interrupted')
    expect(counts.cancelled).toBe(0)
    const before = readFileSync(path('ledger.txt'), 'utf8').trimEnd().split('\n')
    expect(counts.success).toBe(before.length)
    const resumed = again(command!.split(' '))
    expect(await resumed.exit).toBe(0)
    expect(resumed.screen().join('\n')).toMatch(/80 succeeded/)
    const all = readFileSync(path('ledger.txt'), 'utf8').trimEnd().split('\n')
    expect(all).toHaveLength(80)
    expect(new Set(all).size).toBe(80)
  })

  it('cancels what is still running when the grace is over', async () => {
    const { terminal, path } = start({ 'slow.ts': script(10, 60_000) }, [
      'slow.ts',
      '--run-id',
      'slow',
      '--grace',
      '300ms',
    ])
    await terminal.waitFor(/running 8/)
    terminal.ctrlC()
    expect(await terminal.exit).toBe(130)
    expect(overview(path, 'slow')).toMatchObject({ status: 'interrupted', counts: { success: 0, cancelled: 8 } })
  })

  it('stops at once with a second Ctrl-C', async () => {
    const { terminal, path } = start({ 'slow.ts': script(10, 60_000) }, ['slow.ts', '--run-id', 'slow'])
    await terminal.waitFor(/running 8/)
    terminal.ctrlC()
    await terminal.waitFor(/stopping/)
    terminal.ctrlC()
    expect(await terminal.exit).toBe(130)
    expect(terminal.screen().join('\n')).toContain('--resume slow')
    expect(overview(path, 'slow').status).toBe('died')
  })

  it('leaves the terminal as it was when the script throws', async () => {
    const { terminal } = start(
      {
        'throws.ts': script(50, 100)
          .replace('console.log(', `setTimeout(() => { throw new Error('boom') }, 400)\nconsole.log(`)
          .replace('const results = await', 'const results = { size: 0 }; void'),
      },
      ['throws.ts'],
    )
    await terminal.exit
    expect(terminal.screen().join('\n')).toContain('boom')
    expect(terminal.raw().lastIndexOf('\x1b[?25h')).toBeGreaterThanOrEqual(terminal.raw().lastIndexOf('\x1b[?25l'))
  })

  it('keeps its line and what comes back through a pipe apart', async () => {
    const talking = script(160, 100).replace(
      'const results',
      "const talk = setInterval(() => console.log('through the pipe'), 120)\nconst results",
    )
    const { path, options } = project({ 'talk.ts': `${talking}\nclearInterval(talk)` })
    const line = `"${process.execPath}" "${MAIN}" run talk.ts | tee log.txt`
    const terminal = openTerminal('bash', ['-c', line], { ...options, cols: 100, rows: 40 })
    expect(await terminal.exit).toBe(0)
    const said = terminal.screen().filter((text) => text.includes('through'))
    expect(said.length).toBeGreaterThan(2)
    // On a machine that is very busy, tee may be later than the line waits for it. If the line did not wait, all would be spoiled.
    expect(said.filter((text) => text !== 'through the pipe').length).toBeLessThan(said.length / 2)
    expect(readFileSync(path('log.txt'), 'utf8')).not.toContain('\x1b')
  })
})

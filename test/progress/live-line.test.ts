import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it, onTestFinished } from 'vitest'
import { noTerminals, openTerminal, type TestTerminal } from '../terminal/terminal.ts'

const PROGRAM = join(import.meta.dirname, 'programs', 'live.ts')
const SAMPLE_MS = 40
const SETTLED_MS = 20_000

const start = (scenario: string, options: Parameters<typeof openTerminal>[2] = {}) =>
  openTerminal(process.execPath, [PROGRAM, scenario], options)

/** One that is not over before it is told to go on, however long the test takes. */
function startHeld(scenario: string, options: Parameters<typeof openTerminal>[2]) {
  const folder = mkdtempSync(join(tmpdir(), 'manyworlds-live-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const file = join(folder, 'go-on')
  const terminal = start(scenario, { ...options, env: { LIVE_GOES_ON: file } })
  return { terminal, goOn: () => writeFileSync(file, '') }
}

const progressLines = (terminal: TestTerminal) => terminal.screen().filter((line) => /\d+\/\d+ {2}/.test(line))
const contents = (terminal: TestTerminal) => terminal.screen().join('\n').trimEnd().split('\n')
/** What was there before the summary. */
const beforeSummary = (terminal: TestTerminal) => {
  const lines = contents(terminal)
  return lines.slice(
    0,
    lines.findIndex((line) => line.startsWith('run ')),
  )
}

/** What the scenario prints in parts, as it is to be read. */
const IN_PARTS = [
  'start',
  'begun before: and ended',
  '21,22,23,24,25,26,27,28,29,30',
  '31,32,33,34,35,36,37,38,39,40',
  '41,42,43,44,45,46,47,48,49,50',
  '51,52,53,54,55,56,57,58,59,60',
  'red over two writes',
  'x'.repeat(80),
  '|more',
  'own bar 100%',
  'not ended',
  'manyworlds: the disk is slow',
]

/** The most progress lines that were to be seen at once until the program ended. */
async function mostLines(terminal: TestTerminal): Promise<number> {
  let most = 0
  let ended = false
  terminal.exit.then(() => {
    ended = true
  })
  for (; !ended; await sleep(SAMPLE_MS)) most = Math.max(most, progressLines(terminal).length)
  return most
}

/** Nothing of the line is left, and the cursor was never hidden. */
function expectClean(terminal: TestTerminal): void {
  expect(progressLines(terminal)).toEqual([])
  expect(terminal.raw()).not.toContain('\x1b[?25l')
  expect(terminal.raw().lastIndexOf('\x1b[?7h')).toBeGreaterThan(terminal.raw().lastIndexOf('\x1b[?7l'))
}

describe.skipIf(noTerminals())('the live line', { timeout: 120_000 }, () => {
  it('stays below what the script prints, on stdout and stderr, complete and in order', async () => {
    const terminal = start('prints', { rows: 12 })
    await terminal.waitFor(/running 12/)
    expect(await mostLines(terminal)).toBe(1)
    expect(await terminal.exit).toBe(0)
    const lines = Array.from({ length: 100 }, (_, task) => task + 1).flatMap((task) => [
      ...(task % 3 === 0 ? [`out ${task}`] : []),
      ...(task % 7 === 0 ? [`err ${task}`] : []),
    ])
    await terminal.waitFor(new RegExp(['start', ...lines, 'run brave-otter finished'].join('\n')))
    expect(contents(terminal).at(-1)).toBe('end')
    expectClean(terminal)
  })

  it('leaves lines alone that are written in parts, or were begun before it came', async () => {
    const terminal = start('printsParts', { rows: 40 })
    expect(await mostLines(terminal)).toBe(1)
    expect(beforeSummary(terminal)).toEqual(IN_PARTS)
    expectClean(terminal)
  })

  it('leaves them alone at the bottom of a screen that scrolls, too', async () => {
    const terminal = start('printsParts', { rows: 4 })
    expect(await mostLines(terminal)).toBe(1)
    await terminal.waitFor(new RegExp(IN_PARTS.join('\n').replaceAll('|', '\\|')))
    expectClean(terminal)
  })

  it('does not slow down or disturb a flood', async () => {
    const terminal = start('floods', { rows: 30 })
    await terminal.exit
    const last = Array.from({ length: 800 }, (_, line) => `${100 - 15 + Math.floor(line / 50)}.${line % 50}`)
    await terminal.waitFor(new RegExp(last.join('\n').replaceAll('.', '\\.')))
    expect(terminal.raw().length).toBeLessThan(5000 * 40)
    expectClean(terminal)
  })

  it('survives resizes, narrower and wider', async () => {
    const { terminal, goOn } = startHeld('resized', { cols: 90, rows: 40 })
    await terminal.waitFor(/running 12/)
    for (const columns of [60, 30, 20, 100, 25, 70, 21, 120]) {
      terminal.resize(columns, 40)
      await settled(terminal, columns)
    }
    goOn()
    await terminal.exit
    expect(beforeSummary(terminal)).toEqual(['start', ...lines10(100)])
    expectClean(terminal)
  })

  it('survives resizes while a line is begun', async () => {
    const { terminal, goOn } = startHeld('resizedWithPart', { cols: 90 })
    await terminal.waitFor(/running 12/)
    for (const columns of [60, 45, 100, 50]) {
      terminal.resize(columns, 24)
      await settled(terminal, columns)
    }
    goOn()
    await terminal.exit
    expect(beforeSummary(terminal)).toEqual(['start', '.'.repeat(29), '.'.repeat(29)])
    expectClean(terminal)
  })

  it('survives resizes at the bottom of a screen that scrolls', async () => {
    const { terminal, goOn } = startHeld('resized', { cols: 90, rows: 5 })
    await terminal.waitFor(/line 20/)
    for (const columns of [40, 20, 100, 30, 80]) {
      terminal.resize(columns, 5)
      await settled(terminal, columns)
    }
    goOn()
    await terminal.exit
    await terminal.waitFor(new RegExp(['start', ...lines10(100), 'run brave-otter'].join('\n')))
    expectClean(terminal)
  })

  it('is shared by runs that go on at once', async () => {
    const terminal = start('two', { rows: 60 })
    await terminal.waitFor(/2 runs/)
    expect(await mostLines(terminal)).toBe(1)
    const [one, other] = [contents(terminal).indexOf('line 40'), contents(terminal).indexOf('line 50')]
    expect(other).toBe(one + 1)
    expect(contents(terminal).filter((line) => /^run (first|second)-run finished/.test(line))).toHaveLength(2)
    expectClean(terminal)
  })

  it.each([
    ['an uncaught error', 'throws', 1],
    ['process.exit', 'exits', 3],
    ['a signal', 'killed', 143],
  ])('is gone, and the cursor there, after %s', async (_, scenario, code) => {
    const terminal = start(scenario, { cols: 150 })
    await terminal.waitFor(/running 12/)
    expect(await terminal.exit).toBe(code)
    // Node's report on the error begins where the line was, and has the row for itself.
    if (scenario === 'throws') expect(contents(terminal)[1]).toMatch(/^file:.*live\.ts:\d+$/)
    else expect(contents(terminal)).toEqual(['start'])
    expectClean(terminal)
  })

  it('does not keep Ctrl-C from ending the program', async () => {
    const terminal = start('waits')
    await terminal.waitFor(/running 12/)
    terminal.ctrlC()
    expect(await terminal.exit).toBe(130)
    expectClean(terminal)
  })

  it('has no colors with NO_COLOR, and is no line at all on a dumb terminal', async () => {
    const plain = start('prints', { env: { NO_COLOR: '1' } })
    await plain.exit
    expect(plain.raw()).toContain('running 12')
    expect(plain.raw().replaceAll('\x1b', 'ESC')).not.toMatch(/ESC\[[1-9]\d*m/)
    const dumb = start('prints', { env: { TERM: 'dumb' } })
    await dumb.exit
    expect(dumb.raw()).not.toContain('\x1b')
    expect(dumb.raw()).toContain('[brave-otter] started: 100 tasks on local')
  })
})

const lines10 = (to: number) => Array.from({ length: to / 10 }, (_, place) => `line ${10 * (place + 1)}`)

/** Waits until exactly one line is there and fits; what has not got right by then stays wrong. */
async function settled(terminal: TestTerminal, columns: number): Promise<void> {
  const good = () => progressLines(terminal).length === 1 && progressLines(terminal)[0]!.length < columns
  for (const until = Date.now() + SETTLED_MS; !good() && Date.now() < until; ) await sleep(SAMPLE_MS)
  expect(progressLines(terminal), terminal.screen().join('\n')).toHaveLength(1)
  // Still so after it was drawn some more times.
  await sleep(3 * SAMPLE_MS)
}

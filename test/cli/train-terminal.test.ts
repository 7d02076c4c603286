import { describe, expect, it } from 'vitest'
import { noTerminals, openTerminal } from '../terminal/terminal.ts'
import { MAIN } from './manyworlds.ts'
import { trainingProject, trains } from './train-project.ts'

const LINE = /epoch \d\/2 {2}.*: \d+\/\d+/

describe.skipIf(noTerminals())('manyworlds train in a terminal', { timeout: 120_000 }, () => {
  const start = (cols: number) => {
    const { options } = trainingProject({ 'a.ts': trains(500) })
    const words = [MAIN, 'train', 'a.ts', '--run-id', 'a']
    return openTerminal(process.execPath, words, { ...options, cols, rows: 30 })
  }

  it('shows one live line with the curve, below what the script prints, and the summary at the end', async () => {
    const terminal = start(160)
    await terminal.waitFor(
      /epoch 2\/2 {2}update \d: \d+\/16 .*success \d+\.\d % [▁▂▃▄▅▆▇█]+ {2}validation \d+\.\d % \[/,
    )
    // The line makes way for a moment when something is printed.
    const seen = () => {
      const shown = terminal.screen().filter((line) => line !== '')
      const printed = shown.filter((line) => /^epoch 1 \w{64}$/.test(line))
      return [shown.filter((line) => LINE.test(line)).length, LINE.test(shown.at(-1) ?? ''), printed.length]
    }
    await expect.poll(seen, { interval: 20 }).toEqual([1, true, 1])
    expect(await terminal.exit).toBe(0)
    const left = terminal.screen().join('\n')
    expect(left).not.toMatch(LINE)
    expect(left).toMatch(/^training a finished in \d+:\d\d: 2 epochs, 4 updates, 64 episodes/m)
    expect(left).toMatch(/^test +\d+\.\d % \[/m)
    expect(left).toMatch(/^curve +[▁▂▃▄▅▆▇█]{4} {2}success/m)
  })

  it('keeps to one row of a narrow one', async () => {
    const terminal = start(30)
    await terminal.waitFor(/epoch \d\/2/)
    for (const line of terminal.screen()) expect(line.length).toBeLessThanOrEqual(30)
    terminal.ctrlC()
    expect(await terminal.exit).toBe(130)
    expect(terminal.screen().join('\n')).toContain('training a interrupted')
  })
})

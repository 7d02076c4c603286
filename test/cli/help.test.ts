import { readFileSync } from 'node:fs'
import { stripVTControlCharacters } from 'node:util'
import { describe, expect, it } from 'vitest'
import { commands } from '../../dist/cli/commands.js'
import { helpPage } from '../../dist/cli/frame/help-pages.js'
import { parse } from '../../dist/cli/frame/parse.js'
import { painter } from '../../dist/text/paint.js'
import { noTerminals, openTerminal } from '../terminal/terminal.ts'
import { MAIN, manyworlds } from './manyworlds.ts'

const ESCAPE = '\x1b'
/** Wider lines are hard to read. */
const WIDEST = 100
const paint = painter(false)
const names = commands.map(({ spec }) => spec.name)

describe('manyworlds', () => {
  it.each(['', 'help', '--help', '-h'])('%s lists every command with its summary', async (typed) => {
    const { stdout, stderr, code } = await manyworlds(typed === '' ? [] : [typed])
    expect(code).toBe(0)
    expect(stderr).toBe('')
    for (const { spec } of commands) expect(stdout).toMatch(new RegExp(`^ {2}${spec.name} +${spec.summary}$`, 'm'))
    expect(stdout).toMatch(/^ {2}130 {2}interrupted/m)
  })

  it.each(['--version', '-v'])('%s prints the version', async (word) => {
    const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'))
    expect(await manyworlds([word])).toMatchObject({ code: 0, stdout: `${version}\n`, stderr: '' })
  })
})

describe.each(names)('manyworlds help %s', (name) => {
  const { spec } = commands.find((command) => command.spec.name === name)!

  it('is what --help prints, also beside a mistake', async () => {
    const help = await manyworlds(['help', name])
    expect(help).toMatchObject({ code: 0, stderr: '' })
    expect(await manyworlds([name, '--help'])).toEqual(help)
    expect(await manyworlds([name, '--nonsense', '-h'])).toEqual(help)
    expect(help.stdout).toContain(`Usage: manyworlds ${name}`)
    expect(help.stdout).toMatch(/^Exit codes\n {2}0 /m)
    for (const { line } of spec.examples) expect(help.stdout).toContain(`\n  ${line}\n`)
  })

  it('has examples that can be typed as they are', () => {
    expect(spec.examples.length).toBeGreaterThanOrEqual(2)
    const lines = spec.examples.flatMap(({ line }) => /\bmanyworlds ([^|>)]*)/.exec(line)?.[1] ?? [])
    expect(lines.length).toBeGreaterThan(0)
    for (const line of lines) {
      const [command, ...words] = line.trim().split(' ')
      expect(command).toBe(name)
      expect(parse(spec, words)).toMatchObject({ help: false })
    }
  })
})

describe.skipIf(noTerminals())('help in a terminal', () => {
  const show = async (words: readonly string[], options: Parameters<typeof openTerminal>[2]) => {
    const terminal = openTerminal(process.execPath, [MAIN, ...words], options)
    expect(await terminal.exit).toBe(0)
    return terminal.raw()
  }

  it('has colors, unless NO_COLOR is set', async () => {
    expect(await show(['help', 'run'], {})).toContain(`${ESCAPE}[1mExamples`)
    expect(await show(['help', 'run'], { env: { NO_COLOR: '1' } })).not.toContain(ESCAPE)
  })

  it.each([60, 80, 300])('fits into %i columns', async (cols) => {
    // Two in a terminal; what it shows is what the page is made for that width.
    const width = Math.min(cols, WIDEST)
    const page = (name: string) => helpPage(commands.find(({ spec }) => spec.name === name)!.spec, { width, paint })
    const shown = await show(['help', 'run'], { cols })
    expect(stripVTControlCharacters(shown).replaceAll('\r\n', '\n')).toBe(page('run'))
    for (const text of [await show([], { cols }), ...names.map(page)]) {
      const lines = stripVTControlCharacters(text).split(/\r?\n/)
      // Examples are to be copied, so they are not broken.
      const prose = lines.filter((line) => !/manyworlds|^ {2}#/.test(line))
      expect(Math.max(...prose.map((line) => line.length))).toBeLessThanOrEqual(width)
      expect(prose.length).toBeGreaterThan(10)
    }
  })
})

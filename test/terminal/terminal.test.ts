import { readdirSync, readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { noTerminals, openTerminal } from './terminal.ts'

const skip = noTerminals()
const node = (program: string, options?: Parameters<typeof openTerminal>[2]) =>
  openTerminal(process.execPath, ['--eval', program], options)

describe.skipIf(skip)('a program in a pseudo-terminal', () => {
  it('sees a terminal of the given size', async () => {
    const terminal = node(
      'console.log(process.stdin.isTTY, process.stdout.isTTY, process.stderr.isTTY, process.stdout.getWindowSize())',
      { cols: 123, rows: 45 },
    )
    expect(await terminal.exit).toBe(0)
    expect(terminal.screen()[0]).toBe('true true true [ 123, 45 ]')
    expect(terminal.screen()).toHaveLength(45)
  })

  it('hears of a new size', async () => {
    const terminal = node(`
      const { stdout } = process
      stdout.on('resize', () => { console.log('now', stdout.columns, stdout.rows); process.exit() })
      setInterval(() => {}, 1000)
      console.log('before', stdout.columns, stdout.rows)`)
    await terminal.waitFor(/before 80 24/)
    terminal.resize(100, 30)
    await terminal.waitFor(/now 100 30/)
    expect(await terminal.exit).toBe(0)
    expect(terminal.screen()).toHaveLength(30)
  })

  it('gets Ctrl-C as SIGINT, and again', async () => {
    const terminal = node(`
      let count = 0
      process.on('SIGINT', (signal) => { console.log(signal, ++count); if (count === 2) process.exit(130) })
      setInterval(() => {}, 1000)
      console.log('ready')`)
    await terminal.waitFor(/ready/)
    terminal.ctrlC()
    await terminal.waitFor(/SIGINT 1/)
    terminal.ctrlC()
    expect(await terminal.exit).toBe(130)
    expect(terminal.screen()).toContain('^CSIGINT 2')
  })

  it('that does not handle Ctrl-C dies of it', async () => {
    const terminal = node(`setInterval(() => {}, 1000); console.log('ready')`)
    await terminal.waitFor(/ready/)
    terminal.ctrlC()
    expect(await terminal.exit).toBe(130)
  })

  it('shows what a person would see: lines written over, erased, colored, scrolled away', async () => {
    const terminal = node(
      `process.stdout.write('one\\n\\x1b[31mtwo\\x1b[0m\\n10 % of a long line\\r\\x1b[2K20 %\\r3')`,
      { rows: 5 },
    )
    expect(await terminal.exit).toBe(0)
    expect(terminal.screen()).toEqual(['one', 'two', '30 %', '', ''])
    expect(terminal.raw()).toContain('10 % of a long line\r\x1b[2K20 %')

    const long = node('for (let i = 1; i <= 100; i++) console.log(i)', { rows: 4 })
    await long.waitFor(/^1\n2\n3$/m)
    await long.exit
    expect(long.screen()).toEqual(['98', '99', '100', ''])
  })

  it('is typed to, and answered when it asks for the cursor', async () => {
    const terminal = node(`
      process.stdin.setRawMode(true)
      process.stdin.on('data', (data) => console.log(JSON.stringify(String(data))))
      process.stdout.write('ready\\x1b[6n')`)
    await terminal.waitFor(/"\\u001b\[1;6R"/)
    terminal.write('höi')
    await terminal.waitFor(/"höi"/)
  })

  it('that ends without the awaited words fails the wait at once, and shows the screen', async () => {
    const terminal = node(`console.log('something else')`)
    await expect(terminal.waitFor(/never/)).rejects.toThrow('something else')
    const missing = openTerminal('/no/such/program', [])
    expect(await missing.exit).toBe(127)
    expect(missing.screen()[0]).toContain('No such file')
  })
})

describe.skipIf(skip || process.platform !== 'linux')('a test that is over', () => {
  // With the end of the variable: the number of another process may begin with this one.
  const mark = `MANYWORLDS_TERMINAL_TEST=${process.pid}\0`
  const alive = () =>
    readdirSync('/proc').filter((pid) => {
      try {
        return /^\d+$/.test(pid) && readFileSync(`/proc/${pid}/environ`, 'utf8').includes(mark)
      } catch {
        return false
      }
    })

  it('may leave a stubborn program and its children behind', async () => {
    const stubborn = `
      for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => {})
      setInterval(() => {}, 1000)
      if (process.argv[1] === 'parent')
        require('node:child_process').spawn(process.execPath, ['--eval', process.env.PROGRAM], { stdio: 'inherit' })
      console.log('ready', process.argv[1])`
    const terminal = openTerminal(process.execPath, ['--eval', stubborn, 'parent'], {
      env: { PROGRAM: stubborn, MANYWORLDS_TERMINAL_TEST: String(process.pid) },
    })
    await terminal.waitFor(/ready parent/)
    await terminal.waitFor(/ready undefined/)
    expect(alive().length).toBeGreaterThanOrEqual(3)
  })

  it('and finds them gone', async () => {
    await expect.poll(alive, { timeout: 30_000 }).toEqual([])
  })
})

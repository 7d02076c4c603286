import { spawnSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { noTerminals, openTerminal, type TestTerminal } from '../terminal/terminal.ts'
import { MAIN, manyworlds, newFolder, programs } from './manyworlds.ts'

const SHELLS = {
  bash: { args: ['--noprofile', '--norc', '-i'], load: 'source <(manyworlds completion bash)' },
  zsh: { args: ['-f', '-i'], load: 'autoload -Uz compinit && compinit -u -D && source <(manyworlds completion zsh)' },
  fish: { args: ['--no-config', '--interactive'], load: 'manyworlds completion fish | source' },
}
const TAB = '\t'
/** Empties the line. */
const CTRL_U = '\u0015'
const skip = noTerminals()

describe.each(Object.entries(SHELLS))('the tab key in %s', (shell, { args, load }) => {
  const installed = spawnSync(shell, ['--version']).status === 0
  if (!installed) process.stderr.write(`\n*** SKIPPED: completion in ${shell}, which is not installed ***\n\n`)

  /** A shell in a folder with a script and two runs, with the completion loaded. */
  async function openShell(): Promise<TestTerminal> {
    const folder = newFolder()
    mkdirSync(join(folder, '.manyworlds', 'runs'), { recursive: true })
    for (const id of ['nightly-7', 'nightly-8']) writeFileSync(join(folder, '.manyworlds', 'runs', `${id}.sqlite`), '')
    mkdirSync(join(folder, 'whole folder'))
    writeFileSync(join(folder, 'agents.ts'), '')
    writeFileSync(join(folder, 'odd name.ts'), '')
    const bin = programs({ manyworlds: `exec '${process.execPath}' '${MAIN}' "$@"` })
    const terminal = openTerminal(shell, args, {
      cols: 120,
      rows: 40,
      cwd: folder,
      env: { PATH: `${bin}:${process.env.PATH}`, HOME: folder, PS1: '$ ', MANYWORLDS_STORE: undefined },
    })
    // Not to be mistaken for its own echo.
    terminal.write(`${load}; echo loaded | tr a-z A-Z\n`)
    await terminal.waitFor(/LOADED/)
    return terminal
  }

  /** What a line becomes by pressing tab. The X that is typed after it shows whether a blank was added. */
  async function completes(terminal: TestTerminal, typed: string, completed: string): Promise<void> {
    terminal.write(`${typed}${TAB}X`)
    await terminal.waitFor(new RegExp(`[$>%#] ${completed.replaceAll(/[.\\()[\]]/g, '\\$&')}X`))
    terminal.write(`${CTRL_U}clear\n`)
  }

  it.skipIf(skip || !installed)('completes commands, options, their values, files and runs', async () => {
    const terminal = await openShell()
    await completes(terminal, 'manyworlds doc', 'manyworlds doctor ')
    await completes(terminal, 'manyworlds run --conc', 'manyworlds run --concurrency ')
    await completes(terminal, 'manyworlds run --engine sp', 'manyworlds run --engine spark ')
    await completes(terminal, 'manyworlds run --engine=sp', 'manyworlds run --engine=spark ')
    await completes(terminal, 'manyworlds run -w 3 ag', 'manyworlds run -w 3 agents.ts ')
    await completes(terminal, 'manyworlds run odd', 'manyworlds run odd\\ name.ts ')
    await completes(terminal, 'manyworlds run --store=who', 'manyworlds run --store=whole\\ folder/')
    await completes(terminal, 'manyworlds run agents.ts -- ag', 'manyworlds run agents.ts -- agents.ts ')
    await completes(terminal, 'manyworlds show la', 'manyworlds show last ')
    await completes(terminal, 'manyworlds tail ni', 'manyworlds tail nightly-')
    await completes(
      terminal,
      'manyworlds run agents.ts --resume nightly-7',
      'manyworlds run agents.ts --resume nightly-7 ',
    )
    await completes(terminal, 'manyworlds rm nightly-7 nightly-8', 'manyworlds rm nightly-7 nightly-8 ')
    await completes(terminal, 'manyworlds completion z', 'manyworlds completion zsh ')
    await completes(terminal, 'manyworlds setup s', 'manyworlds setup spark ')
    await completes(terminal, 'manyworlds setup s', 'manyworlds setup spark ')
    await completes(terminal, 'manyworlds run --ray', 'manyworlds run --ray-address ')
    await completes(terminal, 'manyworlds run --spark-r', 'manyworlds run --spark-remote ')
  })

  it.skipIf(skip || !installed)('shows what there is to choose from, and no files where none belong', async () => {
    const terminal = await openShell()
    terminal.write(`manyworlds r${TAB}${TAB}`)
    for (const command of [/\brm\b/, /\brun\b/, /\bruns\b/]) await terminal.waitFor(command)
    terminal.write(`${CTRL_U}clear\n`)
    terminal.write(`manyworlds doctor ag${TAB}${TAB}X\n`)
    await terminal.waitFor(/unexpected argument "ag ?X"/)
  })
})

describe('what the shells ask for', () => {
  const words = async (...typed: string[]) => {
    const { stdout, code } = await manyworlds(['__complete', '--', ...typed])
    expect(code).toBe(0)
    return stdout.split('\n').slice(0, -1)
  }

  it('is answered with descriptions', async () => {
    expect(await words('do')).toEqual([
      'words',
      'doctor\tCheck this machine: what is installed, what is missing, what to do',
    ])
  })

  it('offers the nodes that the environment names', async () => {
    const env = { MANYWORLDS_NODES: 'worker1:5000, worker2:5000' }
    const { stdout } = await manyworlds(['__complete', '--', 'nodes', 'status', 'worker'], { env })
    expect(stdout).toBe('words\nworker1:5000\t\nworker2:5000\t\n')
    expect(await words('nodes', '')).toEqual(['words', 'status\t'])
  })

  it('leaves out options that are there already', async () => {
    const offered = await words('run', '-w', '3', '--json', '--')
    expect(offered).toContainEqual(expect.stringMatching(/^--concurrency\t/))
    expect(offered).not.toContainEqual(expect.stringMatching(/^--(workers|json)\t/))
  })

  it('gives nothing for a command that does not exist, or a second argument of one that takes one', async () => {
    expect(await words('nonsense', '')).toEqual(['words'])
    expect(await words('completion', 'bash', '')).toEqual(['words'])
    expect(await words('run', '--workers', '')).toEqual(['words'])
  })
})

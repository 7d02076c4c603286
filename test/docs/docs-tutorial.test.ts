import { execFile } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'
import { usersEnvironment } from '../support/run-script.ts'
import { userProject } from '../support/user-project.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const cli = `node ${join(root, 'dist/cli/main.js')}`
const TUTORIAL_TIMEOUT_MS = 240_000

/** Fails while the run `night` has no answer. The command line would say it as well, and takes longer to start. */
const HAS_BEGUN = [
  "const { DatabaseSync } = require('node:sqlite')",
  "const db = new DatabaseSync('.manyworlds/runs/store.sqlite', { readOnly: true })",
  `const sql = 'SELECT count(*) AS n FROM responses WHERE run_id = ?'`,
  "process.exit(db.prepare(sql).get('night').n > 0 ? 0 : 1)",
].join('; ')

/** What differs from one machine, or one moment, to the next. */
const varying: readonly [RegExp, string][] = [
  [/\d{8}-\d{6}-\w{6}/g, 'RUN'],
  [/\b[\d.]+ (ms|s|min)\b/g, 'TIME'],
  [/\b\d+:\d\d\b/g, 'TIME'],
  [/just now|TIME ago/g, 'LATELY'],
  [/\b[\d.,]+\/s\b/g, 'RATE'],
  [/pid \d+/g, 'pid N'],
  [/local-\d/g, 'local-N'],
  [/\d+\/100/g, 'SOME/100'],
  [/\d+ of them/g, 'SOME of them'],
  [/\s+/g, ' '],
]
const lines = (text: string, folder = '') =>
  text
    .split('\n')
    .map((line) => line.replaceAll(folder || '/home/me/sums', '/home/me/sums').replaceAll(`on ${hostname()}`, 'on vm'))
    .map((line) => varying.reduce((line, [what, word]) => line.replaceAll(what, word), line).trim())

it(
  'every script and command of the tutorial does what the page shows',
  async () => {
    const page = readFileSync(join(root, 'docs/tutorial.md'), 'utf8')
    const path = userProject({ 'package.json': '{"type":"module"}' })
    const folder = path('').replace(/\/$/, '')
    const env = { ...usersEnvironment(), PATH: inFront(dirname(process.execPath)), MANYWORLDS_STORE: '' }
    // Scripts, commands, and what the commands print, in the order of the page.
    const parts = page.matchAll(
      /```ts\n\/\/ (?<file>\w+\.ts)\n(?<code>.*?)```|```sh\n(?<sh>.*?)```\n(?<shown>(?:\n+ {4}[^\n]+)*)/gs,
    )
    let commands = 0
    for (const { groups } of parts) {
      const { file, code, sh, shown = '' } = groups as Partial<Record<string, string>>
      if (file !== undefined) writeFileSync(path(file), code!)
      if (sh === undefined || sh.includes('npm install')) continue
      if (sh.startsWith('node night.ts &')) makeNight(page, path)
      const command = sh
        .replaceAll('npx manyworlds', cli)
        // Five seconds are enough on a machine that has nothing else to do. On another, ask often: the run takes ten.
        .replace('sleep 5', `until node -e "${HAS_BEGUN}" 2>/dev/null; do sleep 0.1; done`)
      const { stdout, stderr } = await promisify(execFile)('sh', ['-c', command], { cwd: folder, env })
      const printed = lines(stdout + stderr, folder)
      for (const line of lines(shown).filter((line) => line !== ''))
        expect(printed, `${sh}\n${printed.join('\n')}`).toContain(line)
      commands++
    }
    expect(commands).toBe(7)
  },
  TUTORIAL_TIMEOUT_MS,
)

const inFront = (folder: string) => [folder, process.env.PATH].join(delimiter)

/** `sums.ts` with another end, as the page says. */
function makeNight(page: string, path: (file: string) => string): void {
  const [, end] = /```ts\n\/\/ night\.ts, the end\n(.*?)```/s.exec(page)!
  const [begin] = readFileSync(path('sums.ts'), 'utf8').split(/^const results/m)
  writeFileSync(path('night.ts'), `${begin}${end}`)
}

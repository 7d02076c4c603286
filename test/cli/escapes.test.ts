import { copyFileSync, writeFileSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { expect, it } from 'vitest'
import type { Ended } from '../support/run-script.ts'
import { nodeForTest } from './background.ts'
import { manyworlds } from './manyworlds.ts'
import { project } from './project.ts'

/** A title for the window, a color by a C1 control, the start of the line, a bell, text that is turned around. */
const EVIL = 'x\x1b]0;owned\x07\x9b31m\ry\u202ez\u2066\u200f\x7f'
const EVIL_SOURCE = JSON.stringify(EVIL)
/** Nothing of ours needs any of these; colors are off in a pipe. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const STEERS = /[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/

function expectHarmless({ stdout, stderr }: Pick<Ended, 'stdout' | 'stderr'>, what: string): void {
  for (const [name, text] of Object.entries({ stdout, stderr })) {
    const at = text.search(STEERS)
    expect(at === -1 ? '' : JSON.stringify(text.slice(Math.max(0, at - 60), at + 20)), `${what}: ${name}`).toBe('')
  }
}

const SCRIPT = `
import { defineAgent, Runners } from 'manyworlds'
const evil = ${EVIL_SOURCE}
const work = defineAgent({
  name: 'work ' + evil,
  run: async (n: number, ctx) => {
    console.log('printed ' + evil)
    ctx.step({ action: evil, data: { [evil]: evil }, reward: evil as never, usage: { inputTokens: evil as never } })
    if (n === 1) throw Object.assign(new Error('thrown ' + evil), { name: evil })
    return { [evil]: [evil, new Map([[evil, evil]])] }
  },
})
const tasks = [0, 1, 2].map((n) => work.task(n, { id: n + evil, metadata: { [evil]: evil }, groupId: evil }))
await Runners.runTask(tasks, { workerNum: 1, maxAttempts: 1 })
`

it('nothing that others wrote steers the terminal: scripts, tasks, run files, file names, what was typed', async () => {
  const { path, options } = project({ 'evil.ts': SCRIPT, 'throws.ts': `throw new Error(${EVIL_SOURCE})` })
  for (const words of [['--show-logs'], ['--json'], ['--quiet', '--show-logs'], ['--no-progress']]) {
    const ended = await manyworlds(['run', 'evil.ts', ...words], options)
    expectHarmless(ended, `run ${words.join(' ')}`)
    expect(ended.stderr + ended.stdout).toMatch(/owned/)
  }
  expectHarmless(await manyworlds(['run', 'throws.ts'], options), 'a script that throws')
  const file = path('.manyworlds/runs/r.sqlite')
  await manyworlds(['run', 'evil.ts', '--run-id', 'r', '-q', '--store', file], options)

  const named = path(`.manyworlds/runs/${EVIL}.sqlite`)
  using db = new DatabaseSync(file)
  db.prepare('UPDATE _run SET run_id = ?, script = ?').run(EVIL, `file:///${EVIL}`)
  db.prepare(`UPDATE _sessions SET ending = 'failed', error = ?, host = ?, config = ?`).run(
    ...([EVIL, EVIL, JSON.stringify({ engineName: EVIL })] as const),
  )
  db.prepare('UPDATE _workers SET id = ?, host = ?').run(EVIL, EVIL)
  db.prepare(`UPDATE _attempts SET error_code = ? WHERE error_code IS NOT NULL`).run(EVIL)
  db.close()
  copyFileSync(file, named)
  writeFileSync(path(`.manyworlds/runs/${EVIL}-2.sqlite`), 'not a database')
  const failed = `1${EVIL}`
  const commands = [
    ...[
      [],
      ['--json'],
      ['--failed', '--logs'],
      ['nosuch'],
      [`nosuch ${EVIL}`],
      [failed],
      [failed, '--json'],
      ['0'],
    ].map((more) => ['show', file, ...more]),
    ...[
      ['show', named],
      ['show', EVIL],
      ['show', `nosuch${EVIL}`],
      ['show', path(`${EVIL}.sqlite`)],
    ],
    ...[
      ['tail', file, '--from-start'],
      ['tail', file, '--from-start', '--json'],
    ],
    ...[
      ['export', file, '--format', 'jsonl'],
      ['export', file, '--format', 'jsonl', '--what', 'steps'],
      ['export', file, '--out', path(`.manyworlds/${EVIL}.csv`)],
      ['export', file, '--out', path(`.manyworlds/${EVIL}.csv`)],
    ],
    ...[['runs'], ['runs', '--json'], ['runs', '--dir', EVIL], ['rm', EVIL, '--dry-run'], ['rm', EVIL]],
    ...[
      ['rm', `${EVIL}-2`, '--yes'],
      ['run', EVIL],
      ['run', 'evil.ts', `--${EVIL}`],
      ['run', 'evil.ts', '--resume', EVIL],
    ],
    ...[['run', 'evil.ts', '--resume', file], [EVIL], ['help', EVIL], ['show', file, '--limit', EVIL]],
    ...[
      ['nodes', 'status', `127.0.0.1:1${EVIL}`],
      ['nodes', 'status', EVIL, '--json'],
      ['init', EVIL],
      ['init', EVIL],
    ],
    ...[
      ['doctor', '--nodes', `${EVIL}:1`],
      ['setup', 'ray', '--version', EVIL],
      ['__complete', '--', 'show', ''],
    ],
  ]
  for (const words of commands) expectHarmless(await manyworlds(words, options), words.join(' '))
}, 480_000)

it('nor do the host names of nodes, and what their workers print', async () => {
  const { path, options } = project({
    'evil.ts': SCRIPT,
    'host.mjs': `import os from 'node:os'
import { syncBuiltinESMExports } from 'node:module'
os.hostname = () => ${EVIL_SOURCE}
syncBuiltinESMExports()`,
  })
  const node = await nodeForTest({ env: { ...process.env, NODE_OPTIONS: `--import=${path('host.mjs')}` } })
  const words = ['--nodes', node.address, '--run-id', 'there']
  expectHarmless(await manyworlds(['run', 'evil.ts', ...words, '--show-logs'], options), 'run')
  expectHarmless(await manyworlds(['run', 'evil.ts', ...words.slice(0, 2), '--json'], options), 'run --json')
  expectHarmless(await manyworlds(['nodes', 'status', node.address], options), 'nodes status')
  expectHarmless(await manyworlds(['nodes', 'status', node.address, '--json'], options), 'nodes status --json')
  expectHarmless(await manyworlds(['doctor', '--nodes', node.address, '--json'], options), 'doctor')
  const shown = await manyworlds(['show', 'there', '--logs'], options)
  expectHarmless(shown, 'show')
  expect(shown.stdout).toContain('on x\\x1b]0;owned')
}, 120_000)

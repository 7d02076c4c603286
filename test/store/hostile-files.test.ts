import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { serialize } from 'node:v8'
import { zstdCompressSync } from 'node:zlib'
import { ManyworldsError, Runners, type TaskLike } from 'manyworlds'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { seeded } from '../../src/random.ts'
import type { FoundRun } from '../../src/store/find-run.ts'
import { openForReading } from '../../src/store/open-for-reading.ts'
import { endedPage } from '../../src/store/paged/attempt-pages.ts'
import { outcomePage } from '../../src/store/paged/outcome-pages.ts'
import { PagedRun } from '../../src/store/paged/paged-run.ts'
import { attemptTexts, startsOfTasks, stepBodies, taskTexts } from '../../src/store/paged/search-pages.ts'
import { taskPage } from '../../src/store/paged/task-pages.ts'
import { echo } from '../agents/basics.ts'
import { succeedsAt, thrower } from '../agents/failing.ts'
import { chat, ledger, odd, parent } from '../agents/ledger.ts'
import { IN_STORM, SEED, share } from '../support/storm.ts'
import { changeFile, columnsOf, says, spoil, WRONG } from './spoil.ts'

/**
 * Files that were damaged, or made to harm whoever opens them. Whatever stands in one, each command shows it or says in
 * one line what is wrong, in a time and a memory that its size explains.
 */

const SHARED = 'You are a careful assistant. '.repeat(60)
const tasksFor = (file: string): TaskLike[] => [
  echo.task({ prompt: SHARED, more: [SHARED, 'x'.repeat(3000)] }, { id: 'large', metadata: { from: 'a test' } }),
  odd.task({ map: new Map([[1, 2]]) }, { id: 'odd' }),
  chat.task({ turns: 18, seed: 1 }, { id: 'chat' }),
  succeedsAt.task(2, { id: 'second-time', maxAttempts: 2 }),
  thrower.task('cause', { id: 'throws' }),
  parent.task({ ledger: file }, { id: 'parent' }),
  ledger.task({ ledger: file }, { id: 'last', dependsOn: ['large'] }),
]
const IDS = ['large', 'odd', 'throws', 'parent', 'last']
/** What a command may say of such a file. */
const CODES = ['STORE_CORRUPT', 'RUN_NOT_FOUND', 'TASK_NOT_FOUND']

let sound: Buffer
let path: string
let store: string
let tasks: TaskLike[]

beforeAll(async () => {
  store = mkdtempSync(join(tmpdir(), 'manyworlds-store-'))
  path = join(store, 'r.sqlite')
  tasks = tasksFor(join(store, 'ledger.txt'))
  await Runners.runTask(tasks, { store: path, runId: 'r', seed: 1, backoffMs: 1 })
  sound = readFileSync(path)
})
afterAll(async () => {
  await Runners.shutdown()
  rmSync(store, { recursive: true, force: true })
})

/** Whether to try this one of many: all in the storm. */
const drawn = seeded(SEED)
const isDrawn = () => IN_STORM || drawn() < 0.15

/** The sound file with this change. */
const changed = (change: (db: DatabaseSync) => void) => changeFile(path, sound, change)

const commandsOn = (file: string) => [
  ['show', file, '--logs', '--full'],
  ['show', file, '--json'],
  ['tail', file, '--from-start'],
  ['runs', '--dir', store],
  ['show', file, '--failed'],
  ...IDS.map((id) => ['show', file, id, '--json']),
  ['show', file, 'no-such-task'],
  ['rm', file, '--dry-run'],
  ['rm', '--dir', store, '--older-than', '1d', '--dry-run'],
]

/** In the storm all of them, else those that read most. */
const someCommands = () => commandsOn(path).slice(0, share(3, Number.POSITIVE_INFINITY))

/** Each command shows the file or has one line to say about it. */
async function expectClearWords(what: string, commands = commandsOn(path)): Promise<Set<string>> {
  const codes = new Set<string>()
  for (const words of commands) {
    const { code, stdout, stderr } = await says(...words)
    const told = `${what}: ${words.join(' ')}: ${stderr}`
    expect([0, 1, 2], told).toContain(code)
    const unreadable = words[0] === 'runs' && /unreadable/.test(stdout)
    if (code === 0 || unreadable) continue
    const [, known] = /^manyworlds: [^\n]* \[([A-Z_]+)\]\n$/.exec(stderr) ?? []
    expect(CODES, told).toContain(known)
    if (known === 'STORE_CORRUPT') expect(stderr, told).toContain(path)
    codes.add(known!)
  }
  return codes
}

/** A resume says what is wrong, or does what is left to be done. */
async function expectClearResume(what: string): Promise<string> {
  try {
    const responses = await Runners.runTask(tasks, { store: path, resume: 'r', seed: 1, backoffMs: 1 })
    expect(responses.size, what).toBe(tasks.length)
    return 'done'
  } catch (error) {
    if (!ManyworldsError.is(error)) throw new Error(`${what}: no clear error`, { cause: error })
    expect(['STORE_CORRUPT', 'RESUME_MISMATCH'], `${what}: ${error.message}`).toContain(error.code)
    expect(error.message, what).toMatch(/\.sqlite|run 'r'/)
    expect(error.message.split('\n'), what).toHaveLength(1)
    return error.code
  }
}

/** The leaf pages of each table, by their offset. */
function leafPages(file: string, bytes: Buffer): { table: string; pages: number[] }[] {
  writeFileSync(file, bytes)
  using db = new DatabaseSync(file, { readOnly: true })
  const size = bytes.readUInt16BE(16) === 1 ? 65_536 : bytes.readUInt16BE(16)
  const below = (offset: number): number[] => {
    if (bytes[offset] === LEAF) return [offset]
    if (bytes[offset] !== INTERIOR) return []
    const children = Array.from({ length: bytes.readUInt16BE(offset + 3) }, (_, at) =>
      bytes.readUInt32BE(offset + bytes.readUInt16BE(offset + 12 + 2 * at)),
    )
    return [...children, bytes.readUInt32BE(offset + 8)].flatMap((child) => below((child - 1) * size))
  }
  return db
    .prepare(`SELECT name, rootpage FROM sqlite_schema WHERE type = 'table' AND name LIKE '\\_%' ESCAPE '\\'`)
    .all()
    .map(({ name, rootpage }) => ({ table: String(name), pages: below((Number(rootpage) - 1) * size) }))
}

const LEAF = 13
const INTERIOR = 5

/** Puts the rows of a leaf page into another order. */
function reorder(bytes: Buffer, offset: number, order: (cells: readonly number[]) => number[]): void {
  const count = bytes.readUInt16BE(offset + 3)
  const cells = Array.from({ length: count }, (_, at) => bytes.readUInt16BE(offset + 8 + 2 * at))
  if (count > 1) for (const [at, cell] of order(cells).entries()) bytes.writeUInt16BE(cell, offset + 8 + 2 * at)
}

/** Reads pages of few rows, as the viewer reads pages of many. */
async function readPaged(file: string): Promise<void> {
  const all = (read: (run: PagedRun, after: number) => number | undefined) => {
    try {
      using db = openForReading(file)
      const run = new PagedRun(db, { path: file, runId: 'r' } as FoundRun)
      for (let after: number | undefined = 0; after !== undefined; ) after = read(run, after)
    } catch (error) {
      if (!ManyworldsError.is(error)) throw error
    }
  }
  all((run, after) => taskPage(run, after, 2).at(-1)?.[0])
  all((run, after) => endedPage(run, after, 2).at(-1)?.seq)
  all((run, after) => taskTexts(run, after, 2, true).at(-1)?.task)
  all((run, after) => attemptTexts(run, after, 2, 'logs').at(-1)?.seq)
  all((run, after) => outcomePage(run, after, 2).next)
  all((run) => {
    for (const { start } of startsOfTasks(run, 0, 1000)) for (const _ of stepBodies(run, start));
    return undefined
  })
}

describe('a run file with something wrong in it is shown, or refused in one clear line', () => {
  it('whatever type of value stands in whatever column', async () => {
    const found = new Set<string>()
    let tried = 0
    for (const { table, column } of columnsOf(path))
      for (const value of WRONG) {
        if (!isDrawn() || !spoil(changed, table, column, value)) continue
        // The one that reads everything, and the others in turn.
        const [all, ...others] = commandsOn(path)
        const commands = [tried++ % 2 === 0 ? all! : others[(tried >> 1) % others.length]!]
        for (const code of await expectClearWords(`${table}.${column} = ${String(value)}`, commands)) found.add(code)
      }
    expect(tried).toBeGreaterThan(share(60, 600))
    expect(found).toContain('STORE_CORRUPT')
  }, 600_000)

  it('and is resumed, or refused in one clear line', async () => {
    const found = new Set<string>()
    for (const { table, column } of columnsOf(path))
      for (const value of [null, 1.5, 2n ** 62n, 'text', new Uint8Array([1, 2, 3])])
        if (isDrawn() && spoil(changed, table, column, value))
          found.add(await expectClearResume(`${table}.${column} = ${String(value)}`))
    const expected = ['RESUME_MISMATCH', 'STORE_CORRUPT', 'done']
    expect(expected).toEqual(expect.arrayContaining([...found]))
    if (IN_STORM) expect(found.size).toBe(expected.length)
  }, 600_000)

  it('if its rows are out of order, so that a reader could read them without end', async () => {
    const found = new Set<string>()
    const orders: readonly ((cells: readonly number[]) => number[])[] = [
      (cells) => cells.toReversed(),
      (cells) => [...cells.slice(1), cells[0]!],
      (cells) => cells.map((_, at) => cells[(at * 7 + 3) % cells.length]!),
      (cells) => cells.map(() => cells.at(-1)!),
    ]
    for (const { table, pages } of leafPages(path, sound))
      for (const [number, order] of orders.entries()) {
        const bytes = Buffer.from(sound)
        for (const page of pages) reorder(bytes, page, order)
        writeFileSync(path, bytes)
        const commands = [...someCommands(), ['show', path, 'chat', '--full'], ['export', path, '--format', 'jsonl']]
        for (const code of await expectClearWords(`${table}, order ${number}`, commands)) found.add(code)
        await readPaged(path)
      }
    expect(found).toContain('STORE_CORRUPT')
  }, 600_000)

  it('if bytes of it are flipped, or the end of it is missing', async () => {
    const draw = seeded(SEED)
    const random = (below: number) => Math.floor(below * draw())
    for (let round = 0; round < share(20, 300); round++) {
      const bytes = Buffer.from(sound)
      for (let flips = 0; flips < 20; flips++) bytes[100 + random(bytes.length - 100)] = random(256)
      writeFileSync(path, round % 10 === 0 ? bytes.subarray(0, random(bytes.length)) : bytes)
      // One that reads everything, and a third of the others in turn.
      const [all, ...others] = commandsOn(path)
      await expectClearWords(`round ${round}`, [all!, ...others.filter((_, at) => at % 3 === round % 3)])
    }
  }, 300_000)
})

describe('a run file that was made to harm', () => {
  const endless = 'WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT * FROM n'
  const TABLES = ['_run', '_sessions', '_agents', '_workers', '_tasks', '_attempts', '_blobs']

  it.each(TABLES)('is refused if %s is a view, a virtual table, or has a generated column', async (table) => {
    const wrong: [string, (db: DatabaseSync) => void][] = [
      ['a view', (db) => db.exec(`DROP TABLE ${table}; CREATE VIEW ${table} AS ${endless}`)],
      ['virtual', (db) => db.exec(`DROP TABLE ${table}; CREATE VIRTUAL TABLE ${table} USING fts5(x)`)],
      ['generated', (db) => db.exec(`ALTER TABLE ${table} ADD COLUMN more AS (zeroblob(1000)) VIRTUAL`)],
      ['missing', (db) => db.exec(`DROP TABLE ${table}`)],
      ['a trigger', (db) => db.exec(`CREATE TRIGGER t AFTER UPDATE ON ${table} BEGIN ${endless}; END`)],
      ['an index', (db) => db.exec(`CREATE INDEX i ON ${table} (zeroblob(1000))`)],
    ]
    for (const [what, change] of wrong) {
      changed(change)
      expect([...(await expectClearWords(`${table}: ${what}`, someCommands()))], what).toContain('STORE_CORRUPT')
      expect(await expectClearResume(`${table}: ${what}`)).toBe('STORE_CORRUPT')
    }
  })

  it('may have views and tables of its own, which are not looked at', async () => {
    changed((db) => db.exec(`CREATE VIEW mine AS ${endless}; CREATE TABLE notes (text); DROP VIEW responses`))
    expect([...(await expectClearWords('views'))]).toEqual(['TASK_NOT_FOUND'])
  })

  /** The answer of the first task is then this. */
  function answer(kind: string, size: number | bigint, data: Uint8Array): void {
    changed((db) => {
      db.prepare('INSERT INTO _blobs VALUES (99, ?, ?, ?, 0, ?, ?)').run(new Uint8Array(16), kind, size, '""', data)
      db.exec(`UPDATE _attempts SET answer = 99 WHERE role = 0 AND status = 'success'`)
    })
  }
  const json = (value: unknown) => Buffer.from(JSON.stringify(value))

  it('cannot fill the memory with few bytes, whatever it says of their size', async () => {
    const piece = Buffer.alloc(2 ** 24, '[')
    // Frames that follow each other are one stream: 8 GB in 100 kB.
    const bomb = Buffer.concat(Array.from({ length: 512 }, () => zstdCompressSync(piece)))
    const before = process.resourceUsage().maxRSS
    for (const size of [0, 5, 2 ** 24, 2 ** 33, 2n ** 40n]) {
      answer('json+zstd', size, bomb)
      expect([...(await expectClearWords(`a bomb of ${size}`))]).toContain('STORE_CORRUPT')
    }
    // Kilobytes.
    expect(process.resourceUsage().maxRSS - before).toBeLessThan(1_500_000)
  }, 120_000)

  it('cannot fill the memory with numbers, or with lists that continue each other', async () => {
    const head = (length: number) => Buffer.from(`[[["a"],${length}]]\n`)
    const whole = Buffer.from([0, 0])
    const bomb = (length: number) =>
      Buffer.concat([
        Buffer.from([1]),
        zstdCompressSync(Buffer.concat([head(length), whole, Buffer.alloc(length - 2)])),
      ])
    const before = process.resourceUsage().maxRSS
    const tooLarge = /\[(STORE_CORRUPT|TRAJECTORY_TOO_LARGE)\]\n$/
    for (const length of [100_000_000, 300_000_000]) {
      changed((db) =>
        db.prepare(`UPDATE _steps SET record = '{"a":null}', links = NULL, numbers = ?`).run(bomb(length)),
      )
      expect((await says('show', path, 'chat')).stderr).toMatch(tooLarge)
    }
    // 18 steps, each with all that the first has.
    const list = JSON.stringify({ a: new Array(4_000_000).fill(0) })
    changed((db) => {
      db.exec(`UPDATE _steps SET record = '{"a":[]}', numbers = NULL, links = '[[["a"],0,4000000]]'`)
      const isFirst = `key % ${2 ** 20} = 0`
      db.prepare(`UPDATE _steps SET record = ?, links = NULL WHERE ${isFirst}`).run(list)
    })
    expect((await says('show', path, 'chat')).stderr).toMatch(tooLarge)
    expect((await says('tail', path, '--from-start', '--steps')).code).toBe(0)
    // Kilobytes.
    expect(process.resourceUsage().maxRSS - before).toBeLessThan(2_000_000)
  }, 120_000)

  it('cannot hold more by parts in parts, by circles, or by many attempts with one large value', async () => {
    const mark = '\0'
    const wrong: [string, () => void][] = [
      ['a circle', () => answer('json+parts', 7 + 3, json([`${mark}99`]))],
      ['a part that is missing', () => answer('json+parts', json([`${mark}98`]).length, json([`${mark}98`]))],
      ['a part of no number', () => answer('json+parts', json([`${mark}x`]).length, json([`${mark}x`]))],
      [
        'parts of parts',
        () => {
          const list = json(Array.from({ length: 1000 }, () => `${mark}98`))
          answer('json+parts', list.length, list)
          using db = new DatabaseSync(path)
          const insert = db.prepare('INSERT INTO _blobs VALUES (?, ?, ?, ?, 0, ?, ?)')
          for (let blob = 60; blob < 99; blob++) {
            const data = json(Array.from({ length: 1000 }, () => `${mark}${blob - 1}`))
            insert.run(blob, Buffer.from(String(blob)), 'json+parts', data.length, '""', data)
          }
        },
      ],
      [
        'one large text many times',
        () => {
          const list = json(Array.from({ length: 20_000 }, () => `${mark}98`))
          answer('json+parts', list.length, list)
          using db = new DatabaseSync(path)
          const text = json('x'.repeat(2 ** 20))
          const sql = `INSERT INTO _blobs VALUES (98, x'00', 'json+zstd', ?, 0, '', ?)`
          db.prepare(sql).run(text.length, zstdCompressSync(text))
        },
      ],
      [
        'many attempts',
        () => {
          const text = json('x'.repeat(2 ** 22))
          answer('json+zstd', text.length, zstdCompressSync(text))
          using db = new DatabaseSync(path)
          db.exec(`WITH RECURSIVE n(i) AS (SELECT 1000 UNION ALL SELECT i + 1 FROM n WHERE i < 2000)
            INSERT INTO _attempts (seq, task, role, attempt, epoch, ended_at, status, queued_us, run_us, worker, error_code, answer,
              error, trajectory, logs, usage) SELECT i, 1, 2, 1, 1, 0, 'success', 0, 0, NULL, NULL, 99, NULL, NULL, NULL, NULL FROM n`)
        },
      ],
    ]
    for (const [what, make] of wrong) {
      make()
      expect([...(await expectClearWords(what, someCommands()))], what).toContain('STORE_CORRUPT')
    }
  }, 240_000)

  it('may have values that are cut short, or no values at all', async () => {
    const whole = serialize({ a: [1, new Map([[1, 2]])] })
    const wrong: [string, Uint8Array][] = [
      ['v8', whole.subarray(0, 9)],
      ['v8', new Uint8Array()],
      ['v8+zstd', whole],
      ['json', Buffer.from('{"a":')],
      ['json', Buffer.alloc(200_000, '[')],
      ['json+parts', Buffer.from('['.repeat(200_000) + ']'.repeat(200_000))],
      ['json+zstd', zstdCompressSync(whole).subarray(0, 12)],
      ['json+v8', whole],
      ['', whole],
    ]
    for (const [kind, data] of wrong) {
      answer(kind, data.length, data)
      expect([...(await expectClearWords(`${kind} ${data.length}`))], kind).toContain('STORE_CORRUPT')
    }
  })
})

import { existsSync, globSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { withTables } from '../../scripts/reference.ts'
import { migrate } from '../../src/store/migrations.ts'
import { APPLICATION_ID, SCHEMA_VERSION } from '../../src/store/schema.ts'
import { MOST_STEPS } from '../../src/trajectory/step.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const read = (path: string) => readFileSync(join(root, path), 'utf8')
const pages = ['README.md', 'CHANGELOG.md', 'CONTRIBUTING.md', 'SECURITY.md', ...globSync('docs/*.md', { cwd: root })]

describe('the documentation keeps up with the source', () => {
  it('explains every error code', () => {
    const codes = read('src/errors.ts').match(/(?<=\| ')[A-Z_]+(?=')/g)!
    const explained = read('docs/errors.md').match(/(?<=^\| `)[A-Z_]+(?=`)/gm)!
    expect(explained.toSorted()).toEqual(codes.toSorted())
  })

  it('has the words of the types in its reference (else: npm run reference)', () => {
    expect(withTables(read('docs/reference.md'), read)).toBe(read('docs/reference.md'))
  })

  it('lists every key of the configuration', () => {
    const keys = read('src/run-config.ts').match(/(?<=^ {2}readonly )\w+(?=\?:)/gm)!
    const section = read('docs/reference.md').split('## RunConfig')[1]!.split('\n## ')[0]!
    expect(section.match(/(?<=^\| `)\w+(?=`)/gm)!.toSorted()).toEqual(keys.toSorted())
  })

  it('refuses a page that leaves out a member, or has one that is gone', () => {
    const types = 'interface A {\n  /** One. */\n  readonly one: 1\n  /** Two. Default: 2. */\n  two?(): number\n}\n'
    const filled = (names: string) => withTables(`<!-- A in a.ts: ${names} -->\n<!-- end -->`, () => types)
    expect(filled('*')).toContain('| `one` | `1` | | One. |\n| `two()` | `(): number` | 2 | Two. |')
    expect(() => filled('one')).toThrow('must list A.two once')
    expect(() => filled('one two three')).toThrow('three')
  })

  it('lists every message of the protocol', () => {
    const types = read('src/protocol/messages.ts').match(/(?<=\btype: ')[a-z-]+(?=')/g)!
    const section = read('docs/architecture.md').split('## The protocol')[1]!.split('\n## ')[0]!
    const listed = section.match(/(?<=^\| )`.*?(?= \|)/gm)!.flatMap((cell) => cell.match(/(?<=`)[a-z-]+(?=`)/g)!)
    expect(listed.toSorted()).toEqual([...new Set(types)].toSorted())
  })

  it('lists every view of the run file with its columns', () => {
    using db = new DatabaseSync(':memory:')
    migrate(db, 0)
    const views = db.prepare(`SELECT name FROM sqlite_schema WHERE type = 'view'`).all() as { name: string }[]
    const page = read('docs/run-file.md')
    for (const { name } of views) {
      const section = page.split(`### \`${name}\``)[1]?.split('\n## ')[0]?.split('\n### ')[0] ?? ''
      const listed = section.match(/(?<=^\| )`.*?(?= \|)/gm)?.flatMap((cell) => cell.match(/(?<=`)\w+(?=`)/g)!)
      const columns = db.prepare(`SELECT name FROM pragma_table_info('${name}')`).all() as { name: string }[]
      expect(listed, name).toEqual(columns.map((column) => column.name))
    }
  })

  it('tells the version of the schema, and the limits of the store', () => {
    const page = read('docs/run-file.md').replaceAll(/\s+/g, ' ')
    expect(page).toContain(`SQLite's \`user_version\`, now ${SCHEMA_VERSION};`)
    expect(page).toContain(`brought to version ${SCHEMA_VERSION} when`)
    expect(page).toContain(`\`0x${APPLICATION_ID.toString(16)}\``)
    expect(page).toContain(`An attempt may record ${MOST_STEPS.toLocaleString('en')} steps`)
  })

  it('gives the limits of flow control as they are', () => {
    const UNITS: Record<string, number> = { KB: 1024, MB: 1024 ** 2 }
    const rows = [...read('docs/flow-control.md').matchAll(/\| ([\d,]+) (\w+) \| `(\w+)` in `([\w/.-]+)`/g)]
    expect(rows.length).toBeGreaterThan(10)
    for (const [, number, unit, name, file] of rows) {
      const [, source] = new RegExp(`const ${name} = ([\\d_ *]+)\\n`).exec(read(`src/${file}`)) ?? []
      const value = source?.split('*').reduce((product, factor) => product * Number(factor.replaceAll('_', '')), 1)
      expect(Number(number!.replaceAll(',', '')) * (UNITS[unit!] ?? 1), `${name} in ${file}`).toBe(value)
    }
  })

  it('shows the sink for MLflow that is in the examples', () => {
    const [, shown] = /For MLflow, over its HTTP API:\n+```ts\n(.*?)```/s.exec(read('docs/training.md'))!
    expect(read('examples/training-sinks/mlflow.ts')).toBe(shown)
  })

  it('shows only formulas with a function that can be imported as functions', () => {
    const exported = read('src/train/index.ts')
    const rows = [...read('docs/training.md').matchAll(/^\| function \|.*\n\|---.*\n((?:\|.*\n)+)/gm)].flatMap(
      ([, table]) => table!.trim().split('\n'),
    )
    const names = rows.flatMap((row) => [...row.split('|')[1]!.matchAll(/`(\w+)\(/g)].map(([, name]) => name!))
    expect(names).toContain('grpo')
    expect(names.filter((name) => !new RegExp(`\\b${name}\\b`).test(exported))).toEqual([])
  })

  it('has a route that leads to every page', () => {
    const linked = read('docs/README.md').match(/(?<=\]\()[\w-]+\.md(?=\))/g)!
    const pages = globSync('docs/*.md', { cwd: root }).map((page) => page.replace('docs/', ''))
    expect(linked.toSorted()).toEqual(pages.filter((page) => page !== 'README.md').toSorted())
  })

  it('shows the hello world that is in the examples', () => {
    const [, shown] = /## Hello, world\n+```ts\n(.*?)```/s.exec(read('README.md'))!
    expect(read('examples/hello.ts')).toBe(`${read('examples/hello.ts').split('\n')[0]}\n${shown}`)
  })
})

describe.each(pages)('%s', (page) => {
  it('names files that exist', () => {
    const text = read(page)
    const links = [...text.matchAll(/\]\((?!https?:)([^)#]+)/g)].map(([, path]) => join(dirname(page), path!))
    const sources = [...text.matchAll(/`((?:src\/)?[\w-]+(?:\/[\w-]+)*\.ts)`/g)].map(([, path]) =>
      join('src', path!.replace(/^src\//, '')),
    )
    const named = page === 'docs/architecture.md' ? [...links, ...sources] : links
    expect(named.filter((path) => !existsSync(join(root, path)))).toEqual([])
  })

  it('links to headings that exist', () => {
    const links = [...read(page).matchAll(/\]\((?!https?:)([^)#]*)#([^)]+)\)/g)]
    const wrong = links.filter(([, path, anchor]) => {
      const target = path === '' ? page : join(dirname(page), path!)
      const headings = read(target).match(/(?<=^#+ ).*/gm) ?? []
      return !headings.map(anchorOf).includes(anchor!)
    })
    expect(wrong.map(([link]) => link)).toEqual([])
  })
})

/** As GitHub makes it of a heading. */
const anchorOf = (heading: string) =>
  heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
    .trim()
    .replaceAll(' ', '-')

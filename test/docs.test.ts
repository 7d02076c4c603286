import { existsSync, globSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { migrate } from '../src/store/migrations.ts'
import { APPLICATION_ID, SCHEMA_VERSION } from '../src/store/schema.ts'
import { MOST_STEPS } from '../src/trajectory/step.ts'

const root = fileURLToPath(new URL('..', import.meta.url))
const read = (path: string) => readFileSync(join(root, path), 'utf8')
const pages = ['README.md', 'CHANGELOG.md', ...globSync('docs/*.md', { cwd: root })]

describe('the documentation keeps up with the source', () => {
  it('explains every error code', () => {
    const codes = read('src/errors.ts').match(/(?<=\| ')[A-Z_]+(?=')/g)!
    const explained = read('docs/errors.md').match(/(?<=^\| `)[A-Z_]+(?=`)/gm)!
    expect(explained.toSorted()).toEqual(codes.toSorted())
  })

  it('lists every key of the configuration', () => {
    const keys = read('src/run-config.ts').match(/(?<=^ {2}readonly )\w+(?=\?:)/gm)!
    const table = read('README.md').split('## Configuration')[1]!.split('\n## ')[0]!
    expect(table.match(/(?<=^\| `)\w+(?=`)/gm)!.toSorted()).toEqual(keys.toSorted())
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

  it('shows the sink for MLflow that is in the examples', () => {
    const [, shown] = /For MLflow, over its HTTP API:\n+```ts\n(.*?)```/s.exec(read('docs/training.md'))!
    expect(read('examples/training-sinks/mlflow.ts')).toBe(shown)
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
})

/**
 * Writes the tables of docs/reference.md from the types that they describe: `npm run reference`.
 *
 * A table stands between two comments. The first names an interface, its file, and the members to list, or `*` for all:
 * `<!-- RunConfig in src/run-config.ts: timeoutMs maxAttempts -->`, … `<!-- end -->`. Every member of an interface must be
 * in exactly one table. This reads text, because TypeScript 7 has no API to ask; it relies on the formatter's layout.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

interface Member {
  readonly name: string
  readonly method: boolean
  readonly type: string
  readonly text: string
}

const root = fileURLToPath(new URL('..', import.meta.url))
const TABLE = /<!-- (?<type>\w+) in (?<file>\S+): (?<names>[^>]+?) -->\n.*?<!-- end -->/gs

/** The members of an interface with their comments; those of an object inside it as `timing.runMs`. */
export function membersOf(source: string, type: string): Member[] {
  const body = new RegExp(`^(?:export )?interface ${type}\\b[^\\n]*\\{\\n(.*?)^\\}`, 'ms').exec(source)?.[1]
  if (body === undefined) throw new Error(`there is no interface ${type}`)
  return members(body, '  ', '')
}

function members(body: string, indent: string, prefix: string): Member[] {
  const member = new RegExp(
    `(?:^${indent}/\\*\\*(?<comment>(?:(?!\\*/).)*)\\*/\\n)?^${indent}(?:readonly )?(?<name>\\w+)(?<type>[?(:<].*?)(?=\\n${indent}\\S|\\n*$(?![\\s\\S]))`,
    'gms',
  )
  return [...body.matchAll(member)].flatMap(({ groups }) => {
    const { name, type, comment } = groups as { name: string; type: string; comment?: string }
    if (comment === undefined) throw new Error(`${prefix}${name} has no comment: say what it is`)
    const inner = /^\??: \{\n(.*)/s.exec(type)?.[1]
    const text = comment.replaceAll(/\n *\* ?/g, ' ').trim()
    const own = { name: prefix + name, method: /^\??[(<]/.test(type), type: inner ? '' : typeText(type), text }
    return [own, ...(inner ? members(inner, `${indent}  `, `${prefix}${name}.`) : [])]
  })
}

/** A property's type as it is written; of a method, its signature. */
const typeText = (type: string) =>
  type
    .replace(/^\??(: )?/, '')
    .replaceAll(/\s+/g, ' ')
    .replaceAll('readonly ', '')
    .replaceAll(/Readonly<(Record<[^<>]*>)>/g, '$1')
    .trim()

/** The page with its tables as the types have them now. */
export function withTables(page: string, read: (file: string) => string): string {
  const listed = new Map<string, string[]>()
  const filled = page.replaceAll(TABLE, (...match) => {
    const { type, file, names } = match.at(-1) as { type: string; file: string; names: string }
    const all = membersOf(read(file), type)
    const wanted = names === '*' ? all.map(({ name }) => name) : names.split(' ')
    listed.set(`${type} in ${file}`, [...(listed.get(`${type} in ${file}`) ?? []), ...wanted])
    const rows = wanted.map((name) => {
      const found = all.find((member) => member.name === name)
      if (!found) throw new Error(`docs/reference.md lists ${name}, which ${type} does not have`)
      return row(found)
    })
    const columns = rows.some((row) => row[2] !== '') ? [0, 1, 2, 3] : [0, 1, 3]
    const line = (cells: readonly string[]) =>
      `| ${columns.map((column) => cells[column]).join(' | ')} |`.replaceAll('  ', ' ')
    const head = [line(['', 'type', 'default', 'meaning']), `|${'---|'.repeat(columns.length)}`]
    return [`<!-- ${type} in ${file}: ${names} -->`, ...head, ...rows.map(line), '<!-- end -->'].join('\n')
  })
  for (const [key, names] of listed) {
    const [type, file] = key.split(' in ') as [string, string]
    for (const { name } of membersOf(read(file), type)) {
      const times = names.filter((listed) => listed === name).length
      if (times !== 1)
        throw new Error(
          `docs/reference.md must list ${type}.${name} once, it does so ${times} times; add it to a \`<!-- ${key}: … -->\` comment`,
        )
    }
  }
  return filled
}

/** Name, type, default and meaning. */
function row({ name, method, type, text }: Member): [string, string, string, string] {
  const [, meaning = text, standard = ''] = /^(.*?) ?\bDefault: (.*?)\.?$/.exec(text) ?? []
  return [
    `\`${name}${method ? '()' : ''}\``,
    type === '' ? '' : `\`${type.replaceAll('|', '\\|')}\``,
    standard,
    meaning.replaceAll(/docs\/(([\w-]+)\.md(?:#[\w-]+)?)/g, '[$2]($1)').replaceAll('|', '\\|'),
  ]
}

if (import.meta.main) {
  const path = join(root, 'docs/reference.md')
  writeFileSync(
    path,
    withTables(readFileSync(path, 'utf8'), (file) => readFileSync(join(root, file), 'utf8')),
  )
}

import { fromMarkdown } from 'mdast-util-from-markdown'
import { gfmFromMarkdown } from 'mdast-util-gfm'
import { gfm } from 'micromark-extension-gfm'
import { expect, test } from 'vitest'
import { piecesOf } from '../../web/src/task/markdown/pieces.ts'
import { cpuMs } from '../support/cpu-ms.ts'

const CHARS = 50_000
const filled = (text: string) => text.repeat(Math.ceil(CHARS / text.length)).slice(0, CHARS)
const parse = (text: string) => fromMarkdown(text, { extensions: [gfm()], mdastExtensions: [gfmFromMarkdown()] })

/** Texts for which the parser alone needs seconds, or overflows its stack. */
const HOSTILE = {
  brackets: '[',
  links: '[a](',
  emphasis: '*_~',
  underscores: 'a_',
  quotes: '> ',
  'quotes without spaces': '>',
  lists: '- ',
  numbers: '1. ',
  items: '- a\n',
  definitions: '[a]: b\n',
  footnotes: '[^1]: a\n\n',
  'rows of a table': `|a|b|\n|-|-|\n${'|1|2|\n'.repeat(8000)}`,
  tables: '|a|b|\n|-|-|\n|1|2|\n\n',
  backticks: '` `` ',
  tildes: '~~~ `',
  html: '<a ',
  lines: 'a\n',
}

test.each(Object.entries(HOSTILE))('no piece of hostile %s takes long, and no text is lost', (_, unit) => {
  const text = filled(unit)
  const pieces = piecesOf(text)
  let slowest = 0
  for (const piece of pieces.filter(({ kind }) => kind === 'markdown').slice(0, 20)) {
    const from = cpuMs()
    parse(piece.text)
    slowest = Math.max(slowest, cpuMs() - from)
  }
  // A tenth of what it takes on an idle machine is usual; the parser alone needs several seconds.
  expect(slowest).toBeLessThan(1500)
  const shown = pieces.map((piece) => piece.text + (piece.kind === 'code' ? piece.about : '')).join('')
  expect(shown.length).toBeGreaterThan(0.9 * text.trim().length)
})

test('a fence keeps what is in it, also without an end', () => {
  expect(piecesOf('a\n```ts title\n# no heading\n\n```\nb\n~~~\n* open')).toEqual([
    { kind: 'markdown', text: 'a' },
    { kind: 'code', about: 'ts title', text: '# no heading\n' },
    { kind: 'markdown', text: 'b' },
    { kind: 'code', about: '', text: '* open' },
  ])
})

test('a long table is cut between rows, each part with the head', () => {
  const rows = Array.from({ length: 300 }, (_, i) => `| row ${i} | ${i * i} |`)
  const pieces = piecesOf(['| name | square |', '|---|--:|', ...rows].join('\n'))
  expect(pieces.length).toBeGreaterThan(1)
  const tables = pieces.map(({ text }) => parse(text).children[0]!)
  expect(tables.every(({ type }) => type === 'table')).toBe(true)
  const drawn = tables.flatMap((table) => (table.type === 'table' ? table.children.slice(1) : []))
  expect(drawn).toHaveLength(300)
})

test('a long list is cut between items', () => {
  const items = Array.from({ length: 200 }, (_, i) => `${i + 1}. item ${i} with some words`)
  const pieces = piecesOf(items.join('\n'))
  expect(pieces.length).toBeGreaterThan(1)
  const starts = pieces
    .map(({ text }) => parse(text).children[0]!)
    .map((list) => (list.type === 'list' ? list.start : 0))
  expect(starts[0]).toBe(1)
  expect(starts[1]).toBeGreaterThan(10)
})

import { counted } from '../../text/quantities.ts'
import type { Paint } from '../colour.ts'
import type { Look } from '../help-pages.ts'
import { columnWidths, page, section, wrap } from '../layout.ts'
import type { Check } from './check.ts'

/** What was found, as a table that reads well. */
export function report(checks: readonly Check[], { width, paint }: Look): string {
  const row = (check: Check) => [mark(check, paint), check.name, state(check), where(check, paint)]
  const widths = columnWidths(checks.map(row))
  const rows = (concerns: Check['concerns']) => checks.filter((check) => check.concerns === concerns).map(row)
  return page([
    section(paint('bold', 'For the local engine'), rows('local'), width, widths),
    section(paint('bold', 'Nodes'), rows('nodes'), width, widths),
    section(paint('bold', 'For the Ray engine: set up by itself at first use'), rows('ray'), width, widths),
    section(paint('bold', 'For engines to come: not needed yet'), rows('later'), width, widths),
    wrap(conclusion(checks), width),
  ])
}

function mark({ status, required }: Check, paint: Paint): string {
  if (status === 'ok') return paint('green', '✓')
  return required ? paint('red', '✗') : paint('yellow', '-')
}

function state({ status, version, path, detail = '' }: Check): string {
  if (status === 'missing') return 'not found'
  if (version === undefined) return path === undefined || status === 'ok' ? detail : status
  return status === 'ok' ? version : `${version}, ${status}`
}

function where({ concerns, purpose, status, path, detail, advice = '' }: Check, paint: Paint): string {
  const use = concerns === 'later' ? `${paint('dim', `for ${purpose}:`)} ` : ''
  if (status === 'ok') return `${use}${path ?? ''}`
  const told = concerns === 'nodes' ? `: ${detail}` : ` ${detail}`
  const problem = path === undefined ? [] : [detail === undefined ? path : `${path}${told}`]
  return `${use}${[...problem, advice].filter((text) => text !== '').join('; ')}`
}

function conclusion(checks: readonly Check[]): string {
  const bad = checks.filter(({ status, required }) => required && status !== 'ok')
  const missing = bad.filter(({ concerns }) => concerns === 'local').map(({ name }) => name)
  const local =
    missing.length === 0
      ? 'What the local engine needs is here.'
      : `The local engine will not work here until this is right: ${missing.join(', ')}.`
  const nodes = checks.filter(({ concerns }) => concerns === 'nodes').length
  const usable = nodes - bad.filter(({ concerns }) => concerns === 'nodes').length
  return nodes === 0 ? local : `${local} ${usable} of ${counted(nodes, 'node')} can be used.`
}

import { counted } from '../../text/quantities.ts'
import { oneLine } from '../../text/visible.ts'
import type { Paint } from '../colour.ts'
import type { Look } from '../help-pages.ts'
import { columnWidths, page, section, wrap } from '../layout.ts'
import type { Check } from './check.ts'

/** What was found, as a table that reads well. */
export function report(checks: readonly Check[], { width, paint }: Look): string {
  const row = (check: Check) => [mark(check, paint), ...[check.name, state(check), where(check)].map(oneLine)]
  const widths = columnWidths(checks.map(row))
  const rows = (concerns: Check['concerns']) => checks.filter((check) => check.concerns === concerns).map(row)
  const about = (heading: string, concerns: Check['concerns']) =>
    section(paint('bold', heading), rows(concerns), width, widths)
  return page([
    about('For the local engine', 'local'),
    about('Nodes', 'nodes'),
    about('Spark cluster', 'cluster'),
    about('For Ray, and for a Spark that is started here: one of them is enough', 'python'),
    about('For the Ray engine: set up by itself at first use', 'ray'),
    about('For the Spark engine with --in-local: set up by itself at first use, but for Java', 'spark'),
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

function where({ concerns, status, version, path = '', detail, advice = '' }: Check): string {
  // Without a version, what else is to be said stands where it would.
  if (status === 'ok') return version === undefined || detail === undefined ? path : `${path}: ${detail}`
  const told = concerns === 'nodes' || concerns === 'cluster' ? `: ${detail}` : ` ${detail}`
  const problem = path === '' ? [] : [detail === undefined ? path : `${path}${told}`]
  return [...problem, advice].filter((text) => text !== '').join('; ')
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
  const cluster = checks.find(({ concerns }) => concerns === 'cluster')
  return [
    local,
    ...(nodes === 0 ? [] : [`${usable} of ${counted(nodes, 'node')} can be used.`]),
    ...(cluster === undefined ? [] : [`The Spark cluster ${cluster.status === 'ok' ? 'can' : 'cannot'} be used.`]),
  ].join(' ')
}

import { oneLine } from '../../../text/escape-controls.ts'
import type { Paint } from '../../../text/paint.ts'
import { columnWidths, page, paragraph, section } from '../../../text/sections.ts'
import type { Look } from '../../frame/help-pages.ts'
import type { Check } from './check.ts'
import { doctors } from './engine-doctors.ts'

/** The checks as a table. */
export function report(checks: readonly Check[], { width, paint }: Look): string {
  const row = (check: Check) => [mark(check, paint), ...[check.name, state(check), where(check)].map(oneLine)]
  const widths = columnWidths(checks.map(row))
  const rows = (concerns: Check['concerns']) => checks.filter((check) => check.concerns === concerns).map(row)
  const about = (heading: string, concerns: Check['concerns']) =>
    section(paint('bold', heading), rows(concerns), width, widths)
  return page([
    about('For the local engine', 'local'),
    about('Packages that only some engines need', 'packages'),
    about('For engines and worlds that need Python (one of these is enough)', 'python'),
    ...doctors.flatMap(({ sections }) =>
      Object.entries(sections).map(([concerns, heading]) => about(heading, concerns)),
    ),
    paragraph(conclusion(checks), width),
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

function where({ status, version, path = '', detail, advice = '' }: Check): string {
  // Without a version, the detail is shown in the column of the version.
  if (status === 'ok') return version === undefined || detail === undefined ? path : `${path}: ${detail}`
  const told = path.includes(':') ? `: ${detail}` : ` ${detail}`
  const problem = path === '' ? [] : [detail === undefined ? path : `${path}${told}`]
  return [...problem, advice].filter((text) => text !== '').join('; ')
}

function conclusion(checks: readonly Check[]): string {
  const bad = checks.filter(({ status, required }) => required && status !== 'ok')
  const missing = bad.filter(({ concerns }) => concerns === 'local').map(({ name }) => name)
  const local =
    missing.length === 0
      ? 'The local engine works here.'
      : `The local engine does not work here until this is fixed: ${missing.join(', ')}.`
  return [
    local,
    ...doctors.map(({ conclude }) => conclude?.(checks)).filter((sentence) => sentence !== undefined),
  ].join(' ')
}

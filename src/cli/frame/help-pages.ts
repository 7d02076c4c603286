import type { Paint } from '../../text/paint.ts'
import { columnWidths, page, paragraph, section } from '../../text/sections.ts'
import { type Command, flagOf, type Option, type Positional, type Spec } from './command.ts'

/** The layout of a page. */
export interface Look {
  readonly width: number
  readonly paint: Paint
}

const EXIT_CODES = {
  0: 'everything succeeded',
  1: 'something did not succeed',
  130: 'interrupted with Ctrl-C; 143 by SIGTERM, 129 by SIGHUP',
}
const EXIT_CODE_EVERYWHERE = {
  2: 'a mistake in what was asked: a wrong option, run, task or configuration',
}
const HELP_OPTION = { type: 'flag', short: 'h', description: 'print this' } as const

/** The page that `manyworlds` without a command prints. */
export function overview(commands: readonly Command[], version: string, look: Look): string {
  const { paint, width } = look
  const rows = (pairs: readonly (readonly [string, string])[]) =>
    pairs.map(([name, description]) => [paint('cyan', name), description])
  return page([
    paragraph(`${paint('bold', 'manyworlds')} ${version}: agent tasks written in TypeScript, run many at once`, width),
    [`${paint('bold', 'Usage:')} manyworlds COMMAND [OPTIONS] …`],
    section(paint('bold', 'Commands'), rows(commands.map(({ spec }) => [spec.name, spec.summary])), width),
    section(
      paint('bold', 'Options'),
      rows([
        ['-h, --help', 'after a command: explain it'],
        ['-v, --version', 'print the version'],
      ]),
      width,
    ),
    section(
      paint('bold', 'Environment'),
      rows([
        ['MANYWORLDS_STORE', 'the folder of run files, instead of .manyworlds/runs; "off": keep none'],
        ['MANYWORLDS_NODES', 'the addresses of your nodes, separated by commas'],
        ['MANYWORLDS_TOKEN_FILE', 'the file with the token of your nodes'],
        ['NO_COLOR', 'no colors, if it is set'],
      ]),
      width,
    ),
    section(paint('bold', 'Exit codes'), exitCodes(EXIT_CODES, look), width),
  ])
}

/** The page that `manyworlds help COMMAND` prints. */
export function helpPage(spec: Spec, look: Look): string {
  const { paint, width } = look
  const positionals = Object.values(spec.positionals).map(({ value, description }) => [
    paint('cyan', value),
    description,
  ])
  const examples = spec.examples.flatMap(({ about, line }) => [`  ${paint('dim', `# ${about}`)}`, `  ${line}`])
  return page([
    paragraph(spec.summary, width).map((line) => paint('bold', line)),
    [`${paint('bold', 'Usage:')} ${usage(spec)}`],
    ...(spec.about ?? []).map((text) => paragraph(text, width)),
    section(paint('bold', 'Arguments'), positionals, width),
    ...optionSections(spec, look),
    [paint('bold', 'Examples'), ...examples],
    section(paint('bold', 'Exit codes'), exitCodes(spec.exitCodes, look), width),
  ])
}

const exitCodes = (codes: Readonly<Record<number, string>>, { paint }: Look): string[][] =>
  Object.entries({ ...codes, ...EXIT_CODE_EVERYWHERE }).map(([code, meaning]) => [paint('cyan', code), meaning])

function usage({ name, positionals, options }: Spec): string {
  const words = Object.values(positionals).map(positionalUsage)
  return ['manyworlds', name, ...(Object.keys(options).length > 0 ? ['[OPTIONS]'] : []), ...words].join(' ')
}

function positionalUsage({ value, many, afterDashes, optional, optionalWith }: Positional): string {
  if (afterDashes) return `[-- ${value}…]`
  const word = many ? `${value}…` : value
  return optional || optionalWith !== undefined ? `[${word}]` : word
}

/** The options under their headings, all with the same column widths. */
function optionSections(spec: Spec, { paint, width }: Look): string[][] {
  const options: [string, Option][] = [...Object.entries(spec.options), ['help', HELP_OPTION]]
  const row = ([key, option]: [string, Option]) => [paint('cyan', optionUsage(key, option)), described(option)]
  const widths = columnWidths(options.map(row))
  // --help is listed in the last group.
  const lastGroup = Object.values(spec.options).at(-1)?.group
  const groupOf = ([key, { group }]: [string, Option]) => (key === 'help' ? lastGroup : group) ?? 'Options'
  return [...new Set(options.map(groupOf))].map((group) => {
    const members = options.filter((option) => groupOf(option) === group)
    return section(paint('bold', group), members.map(row), width, widths)
  })
}

function optionUsage(key: string, option: Option): string {
  const short = option.short === undefined ? '    ' : `-${option.short}, `
  return `${short}${flagOf(key)}${option.type === 'flag' ? '' : ` ${option.value}`}`
}

function described(option: Option): string {
  const choices = option.type === 'choice' ? ` (${option.choices.join(', ')})` : ''
  const preset = option.type !== 'flag' && option.default !== undefined ? ` (default: ${option.default})` : ''
  return `${option.description}${choices}${preset}`
}

import type { StoredTraining } from '../../store/trainings/stored-training.ts'
import { escapeControls } from '../../text/escape-controls.ts'
import type { Paint } from '../../text/paint.ts'
import { cut } from '../../text/width.ts'
import { textChanges } from '../../train/prompts/text-files.ts'
import { type Texts, unpackTexts } from '../../train/prompts/texts.ts'

/**
 * The changes in the texts of a training, from its first version to this one, as a diff. Undefined if its policy does not
 * consist of texts, or if they are not kept. `sentences`: puts each sentence on its own line, because texts are often one
 * long line. Such a diff is for people and cannot be applied.
 */
export async function changesOf(
  training: StoredTraining,
  version: number,
  { sentences = false } = {},
): Promise<string | undefined> {
  const kept = new Set(training.versions().flatMap((row) => (row.kept ? [row.version] : [])))
  if (!kept.has(0) || !kept.has(version)) return undefined
  const after = unpackTexts(await training.weights(version))
  const before = after && unpackTexts(await training.weights(0))
  const shown = sentences ? bySentence : (texts: Texts) => texts
  return before && textChanges(shown(before), shown(after), { from: 0, to: version })
}

const bySentence = (texts: Texts): Texts =>
  Object.fromEntries(Object.entries(texts).map(([name, text]) => [name, text.replaceAll(/(?<=[.!?]) (?=\S)/g, '\n')]))

export interface ChangesLayout {
  readonly paint: Paint
  readonly width: number
  /** The most lines to show. */
  readonly limit: number
  readonly version: number
}

/** The beginning of a diff, in color. */
export function* renderChanges(diff: string, { paint, width, limit, version }: ChangesLayout): Generator<string> {
  yield ''
  if (diff === '') {
    yield `the texts of version ${version} are the same as at the start of the training`
    return
  }
  const lines = diff.split('\n').slice(0, -1)
  const more = lines.length - limit
  yield `texts of version ${version}, compared with the first${more > 0 ? paint('dim', ` (${limit} of ${lines.length} lines; \`export --policy\` writes all)`) : ''}`
  for (const line of lines.slice(0, limit)) {
    const shown = cut(escapeControls(line).replaceAll('\t', ' '), width)
    yield line.startsWith('+')
      ? paint('green', shown)
      : line.startsWith('-')
        ? paint('red', shown)
        : paint('dim', shown)
  }
}

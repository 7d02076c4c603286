import { textOf, wireContent } from '../export/atif/content.ts'
import type { AtifTrajectory } from '../export/atif/document.ts'
import { stepsOfDocument } from '../export/atif/from-atif.ts'
import { fromLossless } from '../trajectory/read-lossless.ts'
import { gradeOf, type ImportedTrajectory } from './imported-trajectory.ts'

/** Converts an ATIF document that passed `checkAtif`. `id`: used if the document has none. */
export function fromDocument(document: AtifTrajectory, id: string): ImportedTrajectory {
  const { steps, extra = {} } = document
  const own = ownFields(extra.manyworlds)
  const asked = steps.find(({ source }) => source === 'user')
  const said = steps.findLast(({ source, message }) => source === 'agent' && message !== '')
  const { ending, group, rollout, meta, ms } = own
  const grade = gradeOf(extra.reward, extra.success)
  return {
    id: document.trajectory_id ?? id,
    agent: document.agent.name,
    input: 'input' in own ? own.input : asked && textOf(wireContent(asked.message)),
    metadata: isFields(meta) ? meta : {},
    ...(isFields(group) && typeof group.id === 'string' && { groupId: group.id }),
    ...(Number.isSafeInteger(rollout) && (rollout as number) > 0 && { rollout: rollout as number }),
    steps: stepsOfDocument(document),
    answer: 'answer' in own ? own.answer : said && textOf(wireContent(said.message)),
    ...failureOf(ending),
    ...(grade && { grade }),
    ms: typeof ms === 'number' && ms >= 0 && Number.isFinite(ms) ? ms : 0,
  }
}

/** The additional fields of our own exports. Other documents have nothing, or something else, under this name. */
function ownFields(value: unknown): Record<string, unknown> {
  try {
    const fields = fromLossless(value)
    return isFields(fields) ? fields : {}
  } catch {
    return {}
  }
}

function failureOf(ending: unknown): Pick<ImportedTrajectory, 'error' | 'cancelled'> {
  if (!isFields(ending) || (ending.kind !== 'failed' && ending.kind !== 'cancelled')) return {}
  const { code, name, message } = isFields(ending.error) ? ending.error : {}
  const text = (value: unknown, otherwise: string) => (typeof value === 'string' ? value : otherwise)
  const error = { code: text(code, 'AGENT_ERROR'), name: text(name, 'Error'), message: text(message, '') }
  return { error, ...(ending.kind === 'cancelled' && { cancelled: true }) }
}

const isFields = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

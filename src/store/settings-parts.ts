import type { BlobReader } from './blobs.ts'
import { keyOf, numberOf } from './keys.ts'
import { isSameValue } from './same-value.ts'
import { answerSettings, changesIn, type SettingChange, settingChanges } from './settings-changes.ts'
import { type DatabaseSync, prepared } from './sqlite.ts'
import { type Columns, checkedRow, isAnything, isFields, isText, isWhole } from './stored-shapes.ts'

/** Consecutive sessions of a run with the same settings. */
export interface SettingsPart {
  /** The first and the last session, from 1. */
  readonly first: number
  readonly last: number
  /** What changed with its first session. Empty for the first part. */
  readonly changes: readonly SettingChange[]
}

interface SessionRow {
  readonly epoch: number
  readonly config: string
}

interface AgentRow {
  readonly session: number
  readonly name: string
  readonly params: unknown
}

const SESSION: Columns<SessionRow> = { epoch: isWhole, config: isText }
const AGENT: Columns<AgentRow> = { session: isWhole, name: isText, params: isAnything }
const SESSIONS = 'SELECT epoch, config FROM _sessions WHERE epoch > ? AND epoch < ? ORDER BY epoch'
const AGENTS = 'SELECT epoch AS session, name, params FROM _agents WHERE agent > ? AND agent < ? ORDER BY agent'

/** The parts of a run that was resumed with other settings (`acceptChanges`); one part if it never was. */
export function settingsParts(db: DatabaseSync, run: number, blobs: BlobReader): SettingsPart[] {
  const range = [keyOf(run, 0), keyOf(run + 1, 0)] as const
  const sessions = prepared(db, SESSIONS).all(...range)
  const parts: { first: number; last: number; changes: SettingChange[] }[] = []
  let before: Record<string, unknown> | undefined
  let byAgents: ReadonlyMap<number, SettingChange[]> | undefined
  for (const row of sessions) {
    const { epoch, config } = checkedRow(row, SESSION, 'a session')
    const number = numberOf(epoch)
    const settings = answerSettings(config)
    const parsed: unknown = JSON.parse(config)
    const isAccepted = isFields(parsed) && parsed.acceptChanges === true
    if (isAccepted) byAgents ??= agentChanges(db, range, blobs)
    const changes = isAccepted
      ? [...(before && settings ? settingChanges(before, settings) : []), ...(byAgents?.get(number) ?? [])]
      : []
    const last = parts.at(-1)
    if (last === undefined || changes.length > 0) parts.push({ first: number, last: number, changes })
    else last.last = number
    before = settings ?? before
  }
  return parts
}

/** Params with which an agent ran first in a session, compared with its earlier ones. */
function agentChanges(
  db: DatabaseSync,
  range: readonly [number, number],
  blobs: BlobReader,
): Map<number, SettingChange[]> {
  const earlier = new Map<string, { session: number; params: unknown }[]>()
  const changes = new Map<number, SettingChange[]>()
  for (const row of prepared(db, AGENTS).all(...range)) {
    const { session, name, params: stored } = checkedRow(row, AGENT, 'an agent')
    blobs.refill()
    const params = blobs.read(stored)
    const known = earlier.get(name) ?? []
    earlier.set(name, known)
    const isNew = !known.some((one) => isSameValue(one.params, params))
    const was = known.findLast((one) => one.session < session)
    if (isNew && was)
      changes.set(session, [...(changes.get(session) ?? []), ...changesIn(`${name}.params`, was.params, params)])
    known.push({ session, params })
  }
  return changes
}

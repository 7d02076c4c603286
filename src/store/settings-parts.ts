import type { BlobReader } from './blobs.ts'
import { keyOf, numberOf } from './keys.ts'
import { isSameValue } from './same-value.ts'
import { ROLE } from './schema.ts'
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
const ANSWERED = `SELECT DISTINCT epoch AS session FROM _attempts WHERE seq >= ? AND seq < ? AND role = ${ROLE.final}`
const AGENTS = 'SELECT epoch AS session, name, params FROM _agents WHERE agent > ? AND agent < ? ORDER BY agent'

/** The parts of a run that was resumed with other settings (`acceptChanges`), by sessions with answers; one part if it never was. */
export function settingsParts(db: DatabaseSync, run: number, blobs: BlobReader): SettingsPart[] {
  const range = [keyOf(run, 0), keyOf(run + 1, 0)] as const
  const sessions = prepared(db, SESSIONS).all(...range)
  const parts: { first: number; last: number; changes: SettingChange[] }[] = []
  let before: Record<string, unknown> | undefined
  let isAccepted = false
  let answered: ReadonlySet<number> | undefined
  let byAgents: ReadonlyMap<number, SettingChange[]> | undefined
  for (const row of sessions) {
    const { epoch, config } = checkedRow(row, SESSION, 'a session')
    const number = numberOf(epoch)
    const settings = answerSettings(config)
    const parsed: unknown = JSON.parse(config)
    // Accepted once is enough, also for a session that comes after one without answers.
    isAccepted ||= isFields(parsed) && parsed.acceptChanges === true
    answered ??= sessions.length > 1 ? sessionsWithAnswers(db, range) : new Set([number])
    const last = parts.at(-1)
    if (last && !answered.has(number)) {
      last.last = number
      continue
    }
    if (isAccepted) byAgents ??= agentChanges(db, range, blobs, answered)
    const changes = isAccepted
      ? [...(before && settings ? settingChanges(before, settings) : []), ...(byAgents?.get(number) ?? [])]
      : []
    if (last === undefined || changes.length > 0) parts.push({ first: number, last: number, changes })
    else last.last = number
    if (!answered.has(number)) continue
    isAccepted = false
    before = settings ?? before
  }
  return parts
}

/** A session that only restored answers mixes nothing. */
const sessionsWithAnswers = (db: DatabaseSync, range: readonly [number, number]): Set<number> =>
  new Set(
    prepared(db, ANSWERED)
      .all(...range)
      .map(({ session }) => Number(session)),
  )

/** Params with which an agent ran first in a session, compared with its earlier ones. */
function agentChanges(
  db: DatabaseSync,
  range: readonly [number, number],
  blobs: BlobReader,
  answered: ReadonlySet<number>,
): Map<number, SettingChange[]> {
  const earlier = new Map<string, { session: number; params: unknown }[]>()
  const changes = new Map<number, SettingChange[]>()
  for (const row of prepared(db, AGENTS).all(...range)) {
    const { session, name, params: stored } = checkedRow(row, AGENT, 'an agent')
    if (!answered.has(session)) continue
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

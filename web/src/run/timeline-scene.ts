import { ROLES, type SessionEntry, STATES } from '../../../src/view/api.ts'
import type { AttemptTable } from './attempt-table.ts'
import { type Lane, placesIn, workerOf } from './lanes.ts'

/** The height of the time axis. With several sessions, their names need another line. */
const AXIS_HEIGHT = 24
const AXIS_HEIGHT_WITH_SESSIONS = 40
const LANE_GAP = 4
const MIN_LANE = 14
/** The largest height of all lanes together; if there are more, they scroll. */
const HEIGHT = 420
const SLOT_HEIGHTS = [16, 12, 9, 7, 5, 4, 3, 2]
/** Above this many attempts per pixel of a slot, single blocks cannot be distinguished. */
const CROWDED = 0.4

/** The kinds of blocks, each with its own look. */
export const KINDS = [
  'success',
  'running',
  'cancelled',
  'superseded',
  'interrupted',
  'timeout',
  'failed',
  'crashed',
] as const
export type Kind = (typeof KINDS)[number]

/** This kind and all kinds after it are failures. */
export const FIRST_BAD = KINDS.indexOf('timeout')
const [SUPERSEDED, UNFINISHED] = [ROLES.indexOf('superseded'), ROLES.indexOf('unfinished')]

/** The layout in pixels, independent of the scroll position. */
export interface Scene {
  readonly table: AttemptTable
  readonly lanes: readonly Lane[]
  readonly tops: readonly number[]
  readonly heights: readonly number[]
  readonly slotHeight: number
  /** The height of the time axis, and of all lanes. */
  readonly axis: number
  readonly height: number
  /** Where the time axis starts; workers' names are left of it. */
  readonly left: number
  readonly width: number
  readonly from: number
  readonly to: number
  /** When the run started: times on the axis count from here. */
  readonly origin: number
  readonly sessions: readonly SessionEntry[]
  /** The session in progress: its unfinished attempts are running. Those of other sessions were interrupted. */
  readonly liveSession: number | undefined
  /** Unfinished attempts whose tasks were tried again: their workers were lost. */
  readonly triedAgain: ReadonlyMap<number, number>
  /** By row: whether its task had been tried before. */
  readonly repeats: Uint8Array
}

/** An attempt of a lane. */
export interface Spot {
  readonly lane: number
  readonly place: number
}

type Places = Omit<Scene, 'tops' | 'heights' | 'slotHeight' | 'axis' | 'height'>

export function sceneOf(places: Places): Scene {
  const { lanes } = places
  const heightsFor = (slot: number) => lanes.map(({ slots }) => Math.max(MIN_LANE, slots * slot))
  const sum = (heights: readonly number[]) => heights.reduce((sum, height) => sum + height + LANE_GAP, LANE_GAP)
  const slotHeight = SLOT_HEIGHTS.find((slot) => sum(heightsFor(slot)) <= HEIGHT) ?? SLOT_HEIGHTS.at(-1)!
  const heights = heightsFor(slotHeight)
  let top = LANE_GAP
  const tops = heights.map((height) => {
    const here = top
    top += height + LANE_GAP
    return here
  })
  const axis = places.sessions.length > 1 ? AXIS_HEIGHT_WITH_SESSIONS : AXIS_HEIGHT
  return { ...places, heights, tops, slotHeight, axis, height: sum(heights) }
}

export const visibleHeight = (scene: Scene) => Math.min(scene.height, HEIGHT + MIN_LANE)
export const perMs = ({ width, left, from, to }: Scene) => (width - left) / Math.max(1, to - from)
export const xOf = (scene: Scene, at: number) => scene.left + (at - scene.from) * perMs(scene)
export const timeAt = (scene: Scene, x: number) => scene.from + (x - scene.left) / perMs(scene)

export function kindOf(scene: Scene, lane: Lane, row: number): number {
  const { table, liveSession } = scene
  const role = table.column('role')[row]
  if (role === SUPERSEDED) return KINDS.indexOf('superseded')
  if (role === UNFINISHED) {
    const worker = workerOf(lane, table, row)
    const isGone = worker?.leftAt !== undefined || worker?.session !== liveSession
    return KINDS.indexOf(liveSession === undefined || isGone || scene.triedAgain.has(row) ? 'interrupted' : 'running')
  }
  return KINDS.indexOf(STATES[table.column('state')[row]!] as Kind)
}

/** Whether there are too many attempts in sight to draw each. */
export function isCrowded(scene: Scene, lane: Lane): boolean {
  const [first, end] = placesIn(lane, scene.from, scene.to)
  return end - first > CROWDED * (scene.width - scene.left) * lane.slots
}

/** The largest distance between the pointer and an attempt that it selects, in pixels. */
const REACH = 3

/** The attempt at a point: `y` counts from the first lane. Of many at the same pixel, the worst. */
export function spotAt(scene: Scene, x: number, y: number): Spot | undefined {
  const index = scene.tops.findIndex((top, lane) => y >= top - 2 && y < top + scene.heights[lane]! + 2)
  const lane = scene.lanes[index]
  if (!lane || x < scene.left - REACH) return undefined
  const slot = Math.floor((y - scene.tops[index]!) / scene.slotHeight)
  const [early, late] = [timeAt(scene, x - REACH), timeAt(scene, x + REACH)]
  const [first, end] = placesIn(lane, early, late)
  const anySlot = isCrowded(scene, lane) || lane.slots === 1
  let best: Spot | undefined
  let bestScore = -Infinity
  for (let place = first; place < end; place++) {
    if (lane.end[place]! < early || (!anySlot && lane.slot[place] !== slot)) continue
    const distance = Math.max(0, lane.start[place]! - timeAt(scene, x), timeAt(scene, x) - lane.end[place]!)
    const score = kindOf(scene, lane, lane.rows[place]!) - 10 * distance * perMs(scene)
    if (score > bestScore) {
      best = { lane: index, place }
      bestScore = score
    }
  }
  return best
}

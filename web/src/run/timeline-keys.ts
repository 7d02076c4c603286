import { firstAbove, type Lane } from './lanes.ts'
import { FIRST_BAD, kindOf, type Scene, type Spot } from './timeline-scene.ts'

/** The attempt that a key selects. Undefined if the key has no meaning, or if there is no such attempt. */
export function stepFrom(scene: Scene, spot: Spot | undefined, key: string): Spot | undefined {
  if (!['ArrowRight', 'ArrowLeft', 'ArrowDown', 'ArrowUp', 'f', 'F'].includes(key)) return undefined
  if (key === 'f' || key === 'F') return nextFailure(scene, spot)
  if (!spot) return firstInSight(scene)
  const lane = scene.lanes[spot.lane]
  if (!lane) return firstInSight(scene)
  if (key === 'ArrowRight' || key === 'ArrowLeft') {
    const place = spot.place + (key === 'ArrowRight' ? 1 : -1)
    return lane.rows[place] === undefined ? undefined : { lane: spot.lane, place }
  }
  const step = key === 'ArrowDown' ? 1 : -1
  for (let index = spot.lane + step; scene.lanes[index]; index += step) {
    const other = scene.lanes[index]!
    if (other.rows.length > 0) return { lane: index, place: nearest(other, lane.start[spot.place] ?? scene.from) }
  }
  return undefined
}

function firstInSight(scene: Scene): Spot | undefined {
  const lane = scene.lanes.findIndex(({ rows }) => rows.length > 0)
  return lane < 0 ? undefined : { lane, place: nearest(scene.lanes[lane]!, scene.from) }
}

const nearest = (lane: Lane, at: number) => Math.max(0, Math.min(lane.rows.length - 1, firstAbove(lane.start, at - 1)))

/** The next failure by start time, on any worker; after the last one, the first. */
function nextFailure(scene: Scene, spot: Spot | undefined): Spot | undefined {
  const after = spot ? scene.lanes[spot.lane]?.start[spot.place] : undefined
  const isLater = (at: number, lane: number, place: number) =>
    spot === undefined ||
    after === undefined ||
    at > after ||
    (at === after && (lane > spot.lane || (lane === spot.lane && place > spot.place)))
  let [first, next]: [Spot | undefined, Spot | undefined] = [undefined, undefined]
  let [firstAt, nextAt] = [Infinity, Infinity]
  for (const [index, lane] of scene.lanes.entries())
    for (let place = 0; place < lane.rows.length; place++) {
      const at = lane.start[place]!
      if (at >= nextAt || kindOf(scene, lane, lane.rows[place]!) < FIRST_BAD) continue
      if (at < firstAt) {
        first = { lane: index, place }
        firstAt = at
      }
      if (isLater(at, index, place)) {
        next = { lane: index, place }
        nextAt = at
      }
    }
  return next ?? first
}

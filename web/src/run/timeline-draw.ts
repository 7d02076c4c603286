import { duration } from '../text/quantities.ts'
import { visibleParts } from '../text/visible-parts.ts'
import { type Lane, placesIn, type Stay } from './lanes.ts'
import type { Look } from './timeline-look.ts'
import {
  FIRST_BAD,
  isCrowded,
  KINDS,
  kindOf,
  perMs,
  type Scene,
  type Spot,
  timeAt,
  visibleHeight,
  xOf,
} from './timeline-scene.ts'

const TICK_PX = 90
const LABEL_MARGIN = 8

/** Draws the visible part. 100,000 attempts take a few milliseconds, because crowded attempts are summed per pixel. */
export function drawTimeline(
  context: CanvasRenderingContext2D,
  scene: Scene,
  look: Look,
  scrollTop: number,
  spots: { readonly focused: Spot | undefined; readonly hovered: Spot | undefined },
): void {
  const height = scene.axis + visibleHeight(scene)
  context.clearRect(0, 0, scene.width, height)
  context.font = look.font
  context.textBaseline = 'middle'
  context.save()
  context.beginPath()
  context.rect(0, scene.axis, scene.width, height)
  context.clip()
  const shift = scene.axis - scrollTop
  for (const [index, lane] of scene.lanes.entries()) {
    const top = scene.tops[index]! + shift
    if (top > height || top + scene.heights[index]! < scene.axis) continue
    for (const stay of lane.stays.values()) drawGround(context, scene, look, stay, top, scene.heights[index]!)
    context.save()
    context.beginPath()
    context.rect(scene.left, top, scene.width - scene.left, scene.heights[index]!)
    context.clip()
    if (isCrowded(scene, lane)) drawCrowd(context, scene, look, lane, top, scene.heights[index]!)
    else drawBlocks(context, scene, look, lane, top)
    context.restore()
    for (const stay of lane.stays.values()) drawComings(context, scene, look, stay, top, scene.heights[index]!)
    drawName(context, scene, look, lane, top + scene.heights[index]! / 2)
  }
  for (const [spot, color] of [
    [spots.hovered, look.text],
    [spots.focused, look.focus],
  ] as const)
    if (spot) outline(context, scene, spot, shift, color)
  context.restore()
  drawAxis(context, scene, look, height)
}

/** Draws the time in which the worker was connected. */
function drawGround(
  context: CanvasRenderingContext2D,
  scene: Scene,
  look: Look,
  { worker, lostAt }: Stay,
  top: number,
  height: number,
): void {
  const session = scene.sessions.find(({ number }) => number === worker.session)
  const isThere = session === undefined || session.number === scene.liveSession
  const leftAt = lostAt ?? worker.leftAt ?? (isThere ? undefined : (session.endedAt ?? session.seenAt))
  const from = Math.max(scene.left, worker.joinedAt === undefined ? scene.left : xOf(scene, worker.joinedAt))
  const to = Math.min(scene.width, leftAt === undefined ? scene.width : xOf(scene, leftAt))
  context.fillStyle = look.ground
  if (to > from) context.fillRect(from, top, to - from, height)
}

/** Draws each attempt as a block. Of attempts in the same pixel, only the worst is drawn. */
function drawBlocks(context: CanvasRenderingContext2D, scene: Scene, look: Look, lane: Lane, top: number): void {
  const [first, end] = placesIn(lane, scene.from, scene.to)
  const [scale, slotHeight] = [perMs(scene), scene.slotHeight]
  const blockHeight = slotHeight > 4 ? slotHeight - 1 : slotHeight
  context.textAlign = 'left'
  const drawnUntil = new Float64Array(lane.slots).fill(-1)
  const drawnKind = new Int8Array(lane.slots).fill(-1)
  const byKind: number[][] = KINDS.map(() => [])
  for (let place = first; place < end; place++) {
    if (lane.end[place]! < scene.from) continue
    const x = Math.max(scene.left - 2, scene.left + (lane.start[place]! - scene.from) * scale)
    const until = Math.min(scene.width + 2, scene.left + (lane.end[place]! - scene.from) * scale)
    const [kind, slot] = [kindOf(scene, lane, lane.rows[place]!), lane.slot[place]!]
    const width = Math.max(1, until - x)
    if (width === 1 && Math.floor(x) === drawnUntil[slot] && kind <= drawnKind[slot]!) continue
    drawnUntil[slot] = Math.floor(x + width - 1)
    drawnKind[slot] = kind
    const isRepeat = scene.repeats[lane.rows[place]!]!
    byKind[kind]!.push(x, top + slot * slotHeight, width > 3 ? width - 1 : width, isRepeat)
  }
  for (const [kind, blocks] of byKind.entries()) {
    if (blocks.length === 0) continue
    const { fill, pattern, sign, isHollow } = look.kinds[KINDS[kind]!]
    for (let at = 0; at < blocks.length; at += 4) {
      const [x, y, width] = [blocks[at]!, blocks[at + 1]!, blocks[at + 2]!]
      const signs = `${blocks[at + 3] === 1 ? '↻' : ''}${sign}`
      context.fillStyle = fill
      if (isHollow && width > 3 && blockHeight > 3) {
        context.strokeStyle = fill
        context.strokeRect(x + 0.5, y + 0.5, width - 1, blockHeight - 1)
      } else context.fillRect(x, y, width, blockHeight)
      if (pattern && width > 3) {
        context.fillStyle = pattern
        context.fillRect(x, y, width, blockHeight)
      }
      if (signs !== '' && width > 10 * signs.length && blockHeight > 8) {
        context.fillStyle = isHollow ? look.text : look.onFill
        context.fillText(signs, x + 4, y + blockHeight / 2)
      }
    }
  }
}

/** Draws columns whose height is the load of the worker, with the share of failures at the bottom. */
function drawCrowd(
  context: CanvasRenderingContext2D,
  scene: Scene,
  look: Look,
  lane: Lane,
  top: number,
  height: number,
): void {
  const { busy, ended, bad, worst } = addUp(scene, lane)
  const bottom = top + height
  const heightAt = (pixel: number) => Math.min(height, Math.max(1, (busy[pixel]! / lane.slots) * height))
  context.fillStyle = look.kinds.success.fill
  for (let pixel = 0; pixel < busy.length; pixel++) {
    if (busy[pixel]! <= 0 && ended[pixel] === 0) continue
    const tall = heightAt(pixel)
    context.fillRect(scene.left + pixel, bottom - tall, 1, tall)
  }
  for (const [kind, name] of KINDS.entries()) {
    if (kind < FIRST_BAD) continue
    context.fillStyle = look.kinds[name].fill
    for (let pixel = 0; pixel < busy.length; pixel++) {
      if (bad[pixel] === 0 || worst[pixel] !== kind) continue
      const tall = Math.max(3, (heightAt(pixel) * bad[pixel]!) / ended[pixel]!)
      context.fillRect(scene.left + pixel, bottom - tall, 1, tall)
    }
  }
}

/** Per pixel: the mean number of running attempts, the number that ended there, how many of them failed, and the worst. */
function addUp(scene: Scene, lane: Lane) {
  const pixels = Math.ceil(scene.width - scene.left)
  const [busy, whole] = [new Float64Array(pixels), new Float64Array(pixels + 1)]
  const [ended, bad, worst] = [new Uint32Array(pixels), new Uint32Array(pixels), new Uint8Array(pixels)]
  const scale = perMs(scene)
  const [first, end] = placesIn(lane, scene.from, scene.to)
  for (let place = first; place < end; place++) {
    const x = Math.max(0, (lane.start[place]! - scene.from) * scale)
    const until = Math.min(pixels - 1e-6, (lane.end[place]! - scene.from) * scale)
    if (until < 0) continue
    const [from, to] = [Math.floor(Math.min(x, until)), Math.floor(until)]
    if (from === to) busy[from]! += until - x
    else {
      busy[from]! += from + 1 - x
      busy[to]! += until - to
      whole[from + 1]!++
      whole[to]!--
    }
    const kind = kindOf(scene, lane, lane.rows[place]!)
    ended[to]!++
    if (kind >= FIRST_BAD) bad[to]!++
    worst[to] = Math.max(worst[to]!, kind)
  }
  let going = 0
  for (let pixel = 0; pixel < pixels; pixel++) {
    going += whole[pixel]!
    busy[pixel]! += going
  }
  return { busy, ended, bad, worst }
}

/** Draws when the worker joined and left, and whether it was lost. */
function drawComings(
  context: CanvasRenderingContext2D,
  scene: Scene,
  look: Look,
  { worker, lostAt }: Stay,
  top: number,
  height: number,
): void {
  if (worker.joinedAt !== undefined) {
    const x = xOf(scene, worker.joinedAt)
    context.fillStyle = look.dim
    if (x >= scene.left && x <= scene.width) {
      context.fillRect(x, top, 1, height)
      triangle(context, x + 1, top, 5)
    }
  }
  const leftAt = lostAt ?? worker.leftAt
  if (leftAt === undefined) return
  const x = xOf(scene, leftAt)
  if (x < scene.left || x > scene.width) return
  if (lostAt !== undefined) return drawLoss(context, look, x, top, height)
  context.fillStyle = look.dim
  context.fillRect(x - 1, top, 1, height)
}

/** Draws a cross in a circle, which stays visible if the blocks of a successor follow immediately. */
function drawLoss(context: CanvasRenderingContext2D, look: Look, x: number, top: number, height: number): void {
  const [middle, radius] = [top + height / 2, Math.min(7, height / 2)]
  const arm = radius / 2
  context.strokeStyle = context.fillStyle = look.kinds.crashed.fill
  context.fillRect(x - 1, top - 1, 2, height + 2)
  context.fillStyle = look.onFill
  context.lineWidth = 2
  context.beginPath()
  context.arc(x, middle, radius, 0, 2 * Math.PI)
  context.fill()
  context.stroke()
  context.beginPath()
  context.moveTo(x - arm, middle - arm)
  context.lineTo(x + arm, middle + arm)
  context.moveTo(x + arm, middle - arm)
  context.lineTo(x - arm, middle + arm)
  context.stroke()
  context.lineWidth = 1
}

function triangle(context: CanvasRenderingContext2D, x: number, y: number, size: number): void {
  context.beginPath()
  context.moveTo(x, y)
  context.lineTo(x + size, y + size / 2)
  context.lineTo(x, y + size)
  context.fill()
}

function drawName(context: CanvasRenderingContext2D, scene: Scene, look: Look, { stays }: Lane, y: number): void {
  context.fillStyle = look.text
  context.textAlign = 'left'
  const name = safe(stays.values().next().value?.worker.id ?? 'no worker')
  context.fillText(name, 0, y, scene.left - LABEL_MARGIN)
}

/** Makes a name safe to draw on a canvas, which has no elements for hidden characters. */
export const safe = (name: string) =>
  visibleParts(name.slice(0, 40))
    .map(({ text }) => text)
    .join('')

function outline(context: CanvasRenderingContext2D, scene: Scene, spot: Spot, shift: number, color: string): void {
  const lane = scene.lanes[spot.lane]
  if (!lane || spot.place >= lane.rows.length) return
  const x = Math.max(scene.left, xOf(scene, lane.start[spot.place]!))
  const until = Math.min(scene.width, xOf(scene, lane.end[spot.place]!))
  const isWhole = isCrowded(scene, lane)
  const top = scene.tops[spot.lane]! + shift + (isWhole ? 0 : lane.slot[spot.place]! * scene.slotHeight)
  const height = isWhole ? scene.heights[spot.lane]! : scene.slotHeight
  context.strokeStyle = color
  context.lineWidth = 2
  context.strokeRect(x - 1, top - 1, Math.max(3, until - x + 1), height + 1)
  context.lineWidth = 1
}

function drawAxis(context: CanvasRenderingContext2D, scene: Scene, look: Look, height: number): void {
  const step = tickStep((TICK_PX / perMs(scene)) | 0)
  context.strokeStyle = look.line
  context.fillStyle = look.dim
  context.textAlign = 'left'
  const first = Math.ceil((scene.from - scene.origin) / step) * step
  for (let at = first; scene.origin + at <= scene.to; at += step) {
    const x = Math.round(xOf(scene, scene.origin + at)) + 0.5
    context.beginPath()
    context.moveTo(x, 16)
    context.lineTo(x, 22)
    context.stroke()
    const text = at === 0 ? '0' : `${at < 0 ? '-' : ''}${duration(Math.abs(at))}`
    if (x + context.measureText(text).width + 3 < scene.width) context.fillText(text, x + 3, 10)
  }
  for (const { number, startedAt } of scene.sessions.length > 1 ? scene.sessions : []) {
    const x = Math.round(xOf(scene, startedAt)) + 0.5
    if (x < scene.left || x > scene.width) continue
    context.strokeStyle = look.text
    context.setLineDash([4, 3])
    context.beginPath()
    context.moveTo(x, scene.axis - 18)
    context.lineTo(x, height)
    context.stroke()
    context.setLineDash([])
    context.fillStyle = look.text
    context.fillText(`session ${number}`, x + 4, scene.axis - 11)
  }
  if (timeAt(scene, scene.width) < scene.origin) return
  context.strokeStyle = look.line
  context.beginPath()
  context.moveTo(scene.left, scene.axis - 0.5)
  context.lineTo(scene.width, scene.axis - 0.5)
  context.stroke()
}

const STEPS_MS = [1, 2, 5, 10, 20, 50, 100, 200, 500].concat(
  [1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14_400, 28_800, 86_400].map((s) => 1000 * s),
)
const DAY_MS = 86_400_000

const tickStep = (least: number) =>
  STEPS_MS.find((step) => step >= least) ?? Math.ceil(Math.max(1, least) / DAY_MS) * DAY_MS

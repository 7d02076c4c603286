import { KINDS, type Kind } from './timeline-scene.ts'

/** Colors and patterns of the timeline in the current theme. */
export interface Look {
  readonly font: string
  readonly text: string
  readonly dim: string
  readonly line: string
  readonly ground: string
  readonly focus: string
  /** Text on a filled block. */
  readonly onFill: string
  readonly kinds: Readonly<Record<Kind, KindLook>>
}

interface KindLook {
  readonly fill: string
  readonly pattern: CanvasPattern | undefined
  readonly sign: string
  readonly isHollow: boolean
}

const VARIABLES: Readonly<Record<Kind, string>> = {
  success: 'success',
  running: 'running',
  cancelled: 'cancelled',
  superseded: 'dim',
  interrupted: 'pending',
  timeout: 'timeout',
  failed: 'failed',
  crashed: 'crashed',
}
const SIGNS: Readonly<Record<Kind, string>> = {
  success: '',
  running: '▸',
  cancelled: '–',
  superseded: '≠',
  interrupted: '‖',
  timeout: 't',
  failed: '×',
  crashed: '!',
}
const HOLLOW: readonly Kind[] = ['running', 'superseded', 'interrupted']

/** Lines in a tile of 6 by 6: from x, y to x, y. */
const LINES: Readonly<Partial<Record<Kind, readonly (readonly [number, number, number, number])[]>>> = {
  failed: [
    [0, 6, 6, 0],
    [-1, 1, 1, -1],
    [5, 7, 7, 5],
  ],
  crashed: [
    [0, 6, 6, 0],
    [0, 0, 6, 6],
  ],
  timeout: [[3, 0, 3, 6]],
}

/** Reads the colors from the style sheet. */
export function lookOf(element: HTMLElement): Look {
  const color = resolver(element)
  const onFill = color('panel')
  const kinds = KINDS.map((kind) => [
    kind,
    {
      fill: color(VARIABLES[kind]),
      pattern: patternOf(kind, onFill),
      sign: SIGNS[kind],
      isHollow: HOLLOW.includes(kind),
    },
  ])
  return {
    font: `11px ${getComputedStyle(element).fontFamily}`,
    ...{ text: color('text'), dim: color('dim'), line: color('line'), ground: color('sunken'), focus: color('focus') },
    onFill,
    kinds: Object.fromEntries(kinds) as Look['kinds'],
  }
}

/** A canvas does not support `light-dark()`, so colors are resolved with an element. */
function resolver(element: HTMLElement): (variable: string) => string {
  return (variable) => {
    const probe = document.createElement('span')
    probe.style.color = `var(--${variable})`
    element.append(probe)
    const { color } = getComputedStyle(probe)
    probe.remove()
    return color
  }
}

function patternOf(kind: Kind, color: string): CanvasPattern | undefined {
  const lines = LINES[kind]
  if (!lines) return undefined
  const tile = document.createElement('canvas')
  tile.width = tile.height = 6
  const context = tile.getContext('2d')!
  context.strokeStyle = color
  context.globalAlpha = 0.65
  context.lineWidth = 1.2
  for (const [x, y, toX, toY] of lines) {
    context.beginPath()
    context.moveTo(x, y)
    context.lineTo(toX, toY)
    context.stroke()
  }
  return context.createPattern(tile, 'repeat') ?? undefined
}

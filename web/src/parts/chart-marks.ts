/** The style of series: color, dashes and markers, so that they differ by more than color. */

type Shape = (path: Path2D, x: number, y: number, size: number) => void

const polygon =
  (...corners: readonly (readonly [number, number])[]): Shape =>
  (path, x, y, size) => {
    for (const [place, [dx, dy]] of corners.entries())
      if (place === 0) path.moveTo(x + dx * size, y + dy * size)
      else path.lineTo(x + dx * size, y + dy * size)
    path.closePath()
  }

const SHAPES: readonly Shape[] = [
  (path, x, y, size) => {
    path.moveTo(x + size, y)
    path.arc(x, y, size, 0, 2 * Math.PI)
  },
  polygon([-0.9, -0.9], [0.9, -0.9], [0.9, 0.9], [-0.9, 0.9]),
  polygon([0, -1.2], [1.1, 0.8], [-1.1, 0.8]),
  polygon([0, -1.3], [1.3, 0], [0, 1.3], [-1.3, 0]),
  polygon([0, 1.2], [1.1, -0.8], [-1.1, -0.8]),
  polygon(
    [-1.2, -0.4],
    [-0.4, -0.4],
    [-0.4, -1.2],
    [0.4, -1.2],
    [0.4, -0.4],
    [1.2, -0.4],
    [1.2, 0.4],
    [0.4, 0.4],
    [0.4, 1.2],
    [-0.4, 1.2],
    [-0.4, 0.4],
    [-1.2, 0.4],
  ),
]

const DASHES: readonly (readonly number[])[] = [[], [8, 4], [2, 3], [10, 3, 2, 3], [5, 2], [12, 5, 3, 5, 3, 5]]

/** The number of colors in chart.css. */
const COLORS = 7

export interface Look {
  /** The name of a variable in chart.css. */
  readonly color: string
  readonly dash: readonly number[]
  readonly shape: Shape
}

/** The look of the series with this number. Colors, dashes and shapes repeat at different numbers: 42 looks. */
export const lookOf = (style: number): Look => ({
  color: `--series-${style % COLORS}`,
  dash: DASHES[style % DASHES.length]!,
  shape: SHAPES[style % SHAPES.length]!,
})

/** The same shape as the attribute `d` of an SVG path, in a box of 12 by 12. */
export function svgShape(style: number): string {
  const commands: string[] = []
  const at = (x: number, y: number) => `${x.toFixed(1)} ${y.toFixed(1)}`
  lookOf(style).shape(
    {
      moveTo: (x: number, y: number) => commands.push(`M${at(x, y)}`),
      lineTo: (x: number, y: number) => commands.push(`L${at(x, y)}`),
      arc: (x: number, y: number, r: number) =>
        commands.push(`A${r} ${r} 0 1 1 ${at(x - r, y)}A${r} ${r} 0 1 1 ${at(x + r, y)}`),
      closePath: () => commands.push('Z'),
    } as unknown as Path2D,
    ...([12, 6, 3.5] as const),
  )
  return commands.join('')
}

/** Resolves variables of the style sheet to colors that a canvas takes. */
export function colorsOf(element: Element, names: readonly string[]): Map<string, string> {
  const probe = document.createElement('i')
  element.append(probe)
  const colors = new Map<string, string>()
  for (const name of names) {
    probe.style.color = `var(${name})`
    colors.set(name, getComputedStyle(probe).color)
  }
  probe.remove()
  return colors
}

/** `rgb(1, 2, 3)` with an opacity. */
export const faded = (color: string, opacity: number): string =>
  color.replace(/^rgba?\((\d+), (\d+), (\d+).*/, `rgba($1, $2, $3, ${opacity})`)

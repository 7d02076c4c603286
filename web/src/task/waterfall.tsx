import { useEffect, useRef } from 'preact/hooks'
import { SafeText } from '../parts/safe-text.tsx'
import { ScrollRegion } from '../parts/scroll-region.tsx'
import { useVirtualRows } from '../parts/virtual-rows.ts'
import { dollars, duration, shortCount } from '../text/quantities.ts'
import type { ShownStep } from './shown-step.ts'
import './waterfall.css'

const ROW_PX = 24
const SIGNS = { model: '◆', tool: '⚙', action: '▸', note: '·' } as const

interface Props {
  readonly steps: readonly ShownStep[]
  readonly runMs: number
  readonly marked: number | undefined
  readonly hrefOf: (index: number) => string
}

/** The time, duration and cost of each step. A step is recorded at its end. */
export function Waterfall({ steps, runMs, marked, hrefOf }: Props) {
  const scroller = useRef<HTMLDivElement>(null)
  const timed = steps.filter(({ isWellFormed }) => isWellFormed)
  const { items, height, scrollTo } = useVirtualRows(scroller, timed.length, ROW_PX)
  const place = timed.findIndex(({ step }) => step.index === marked)
  useEffect(() => {
    if (place >= 0) scrollTo(place)
  }, [place])
  // Notes and actions have neither a duration nor a cost.
  const isPlain = timed.every(({ step }) => !('ms' in step) && step.usage === undefined)
  const endMs = timed.reduce((end, { step }) => Math.max(end, step.atMs), runMs) || 1
  const totals = totalsOf(timed)
  return (
    <section class={`panel ${isPlain ? 'waterfall-plain' : ''}`} aria-labelledby="waterfall-title">
      <div class="row spread">
        <h2 id="waterfall-title">Time and cost by step</h2>
        <span class="dim waterfall-totals">{totals}</span>
      </div>
      <div class="waterfall-scale dim" aria-hidden="true">
        <span>0</span>
        <span>{duration(endMs / 2)}</span>
        <span>{duration(endMs)}</span>
      </div>
      <ScrollRegion class="waterfall-scroller" scroller={scroller} label="Steps by time">
        <div class="waterfall-rows" style={{ height: `${height}px` }}>
          {items.map(({ index: place, start }) => {
            const { step } = timed[place]!
            return (
              <a
                key={step.index}
                class={`waterfall-row ${step.index === marked ? 'waterfall-marked' : ''}`}
                style={{ transform: `translateY(${start}px)` }}
                href={hrefOf(step.index)}
                title={titleOf(step)}
              >
                <span class="waterfall-name cut">
                  <span class="dim number">{step.index}</span> <span aria-hidden="true">{SIGNS[step.kind]}</span>{' '}
                  <SafeText text={nameOf(step)} />
                </span>
                <span class="waterfall-track">
                  <span class={`waterfall-bar waterfall-${step.kind}`} style={barOf(step, endMs)} />
                </span>
                <span class="number waterfall-figure">{'ms' in step ? duration(step.ms) : ''}</span>
                <span class="number dim waterfall-figure">{costOf(step)}</span>
              </a>
            )
          })}
        </div>
      </ScrollRegion>
    </section>
  )
}

type Step = ShownStep['step']

function barOf(step: Step, endMs: number) {
  const ms = 'ms' in step ? step.ms : 0
  const left = Math.max(0, (step.atMs - ms) / endMs)
  return { left: `${100 * Math.min(left, 1)}%`, width: `${100 * Math.min(ms / endMs, 1 - left)}%` }
}

function nameOf(step: Step): string {
  const agent = step.agent === undefined ? '' : ` (${step.agent})`
  switch (step.kind) {
    case 'model':
      return `${step.role === 'agent' ? 'model' : step.role}${agent}`
    case 'tool':
      return `${step.error === undefined ? '' : '✗ '}${step.name}${agent}`
    default:
      return step.kind + agent
  }
}

function costOf({ usage }: Step): string {
  if (usage?.costUsd !== undefined) return dollars(usage.costUsd)
  const tokens = (usage?.inputTokens ?? 0) + (usage?.outputTokens ?? 0)
  return tokens === 0 ? '' : `${shortCount(tokens)} t`
}

function titleOf(step: Step): string {
  const ms = 'ms' in step ? step.ms : 0
  const when = `from ${duration(Math.max(0, step.atMs - ms))} to ${duration(step.atMs)}`
  return `step ${step.index}, ${nameOf(step)}: ${ms > 0 ? when : `at ${duration(step.atMs)}`}`
}

/** `models 3.2 s, tools 120 ms` */
function totalsOf(steps: readonly ShownStep[]): string {
  const sums = { model: 0, tool: 0 }
  for (const { step } of steps) if (step.kind === 'model' || step.kind === 'tool') sums[step.kind] += step.ms
  return [sums.model > 0 ? `models ${duration(sums.model)}` : '', sums.tool > 0 ? `tools ${duration(sums.tool)}` : '']
    .filter(Boolean)
    .join(', ')
}

import { execFileSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, renameSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import type { Page } from 'playwright-core'
import { makeReport } from '../dist/view/report.js'
import { targetOf } from '../dist/view/target.js'
import { launchBrowser, startView } from '../test/view/browser/harness.ts'
import { median, numberOf } from './figures.ts'
import { describeMachine } from './machine.ts'

/**
 * The viewer on a large run, in a real browser on the same machine: until the page can be used, how long it takes to answer, how much
 * memory the server needs, and what a report and a comparison with a second run take.
 *
 *   node bench/view.ts [--tasks 100000] [--steps 10] [--rounds 5] [--store FOLDER]
 *
 * `--store` keeps the runs for the next time.
 */
const TASKS = numberOf('--tasks', 100_000)
const STEPS = numberOf('--steps', 10)
const ROUNDS = numberOf('--rounds', 5)
const SCROLLS = 40
const WAIT_MS = 120_000
/** In the steps of a tenth of the tasks, and in no id, input, answer or error. */
const IN_STEPS = 'not found'

const at = process.argv.indexOf('--store')
const folder = at < 0 ? mkdtempSync(join(tmpdir(), 'manyworlds-bench-view-')) : resolve(process.argv[at + 1]!)
const root = resolve(import.meta.dirname, '..')

try {
  if (!existsSync(join(folder, 'store.sqlite'))) make(folder, 'made', 1)
  await measure()
  await report()
  await compare()
} finally {
  if (at < 0) rmSync(folder, { recursive: true, force: true })
}

function make(into: string, run: string, seed: number): void {
  const sizes = ['--tasks', `${TASKS}`, '--steps', `${STEPS}`, '--run', run, '--seed', `${seed}`]
  execFileSync(process.execPath, [join(root, 'bench/view/make-store.ts'), ...sizes, into], {
    stdio: ['ignore', 'ignore', 'inherit'],
  })
}

async function measure(): Promise<void> {
  await using view = await startView([folder])
  const browser = await launchBrowser()
  try {
    const page = await browser.newPage({ viewport: { width: 1280, height: 900 } })
    const opened = await rounds(async () => await open(page, view.url))
    const rows: [what: string, values: readonly number[]][] = [
      ['open: first rows of the table', opened.map(({ first }) => first)],
      ['open: all tasks are there', opened.map(({ all }) => all)],
      ['filter: by state', await rounds(() => answer(page, () => press(page, '.tasks-states button:nth-of-type(2)')))],
      [
        'filter: part of an id',
        await rounds((round) => answer(page, () => type(page, '.tasks-id-filter', `9${round}`))),
      ],
      [
        'sort: by run time',
        await rounds(() => answer(page, () => press(page, 'th[aria-sort] button >> text=Run time'))),
      ],
      ['scroll: to another place', await scrolls(page)],
      ['search: first hit', await rounds(() => firstHit(page, IN_STEPS))],
    ]
    const size = statSync(join(folder, 'store.sqlite')).size
    console.log(`${TASKS} tasks with ${STEPS} steps each, ${(size / 1e6).toFixed(0)} MB; median of ${ROUNDS}\n`)
    console.log('| | ms | slowest |\n| --- | ---: | ---: |')
    for (const [what, values] of rows)
      console.log(`| ${what} | ${median(values).toFixed(0)} | ${Math.max(...values).toFixed(0)} |`)
    console.log(`\nserver: at most ${highestMb(view.pid)} MB of memory\n\n${describeMachine()}`)
  } finally {
    await browser.close()
  }
}

/** A report with the usual limit, in this process. */
async function report(): Promise<void> {
  const cpu = process.cpuUsage()
  const began = performance.now()
  const { bytes, leftOut } = await makeReport(targetOf('made', folder))
  const { user, system } = process.cpuUsage(cpu)
  const [seconds, cpuSeconds] = [(performance.now() - began) / 1000, (user + system) / 1e6]
  console.log(`\nreport: ${seconds.toFixed(1)} s, ${cpuSeconds.toFixed(1)} s of CPU, ${(bytes / 1e6).toFixed(1)} MB`)
  for (const what of leftOut) console.log(`left out: ${what}`)
}

/** Two such runs, in a server that does nothing else. */
async function compare(): Promise<void> {
  const second = join(folder, 'other.sqlite')
  if (!existsSync(second)) {
    make(join(folder, 'second'), 'other', 2)
    renameSync(join(folder, 'second', 'store.sqlite'), second)
  }
  await using view = await startView([folder])
  const headers = { authorization: `Bearer ${new URL(view.url).searchParams.get('token')}` }
  const times = await rounds(async () => {
    const began = performance.now()
    await (await fetch(new URL('/api/compare?a=made&b=other', view.url), { headers })).text()
    return performance.now() - began
  })
  console.log(
    `\ncomparison of two runs: ${(median(times) / 1000).toFixed(1)} s, at most ${highestMb(view.pid)} MB of memory`,
  )
}

async function rounds<T>(one: (round: number) => Promise<T>): Promise<T[]> {
  const all: T[] = []
  for (let round = 0; round < ROUNDS; round++) all.push(await one(round))
  return all
}

/** From the request for the page. */
async function open(page: Page, url: string): Promise<{ first: number; all: number }> {
  await page.goto('about:blank')
  const began = performance.now()
  await page.goto(`${url}#/run/made`, { waitUntil: 'commit' })
  await page.locator('table[aria-label=Tasks] [data-row]').first().waitFor({ timeout: WAIT_MS })
  const first = performance.now() - began
  const status = page.locator('section.tasks [role=status]').first()
  for (; /loading/.test((await status.textContent()) ?? ''); ) await page.waitForTimeout(20)
  return { first, all: performance.now() - began }
}

/** The time from an input until the changed table is drawn, measured in the page. */
async function answer(page: Page, act: () => Promise<void>): Promise<number> {
  await page.evaluate(`(() => {
    const table = document.querySelector('section.tasks')
    globalThis.answered = new Promise((done) => {
      let began
      for (const kind of ['pointerdown', 'input']) addEventListener(kind, () => { began ??= performance.now() }, { capture: true, once: true })
      new MutationObserver((_, observer) => {
        if (began === undefined) return
        observer.disconnect()
        requestAnimationFrame(() => setTimeout(() => done(performance.now() - began)))
      }).observe(table, { subtree: true, childList: true, characterData: true, attributes: true, attributeFilter: ['href', 'data-row'] })
    })
  })()`)
  await act()
  return await page.evaluate<number>('globalThis.answered')
}

function press(page: Page, selector: string): Promise<void> {
  return page.locator(selector).first().click()
}

function type(page: Page, selector: string, text: string): Promise<void> {
  return page.locator(selector).fill(text)
}

/** Jumps to another place of the table: the time until its rows are drawn. */
async function scrolls(page: Page): Promise<number[]> {
  await page.locator('.tasks-id-filter').fill('')
  // That is not part of the first scroll.
  await page.waitForTimeout(500)
  return await page.evaluate<number[]>(`(async () => {
    const body = document.querySelector('table[aria-label=Tasks] tbody')
    const frame = () => new Promise((done) => requestAnimationFrame(() => done()))
    const taken = []
    for (let n = 1; n <= ${SCROLLS}; n++) {
      const to = Math.floor((body.scrollHeight - body.clientHeight) * ((n * 0.618) % 1))
      const began = performance.now()
      body.scrollTop = to
      const isDrawn = () => [...body.querySelectorAll('[data-row]')].some((row) => {
        const { top, bottom } = row.getBoundingClientRect()
        const middle = body.getBoundingClientRect().top + body.clientHeight / 2
        return top <= middle && bottom >= middle
      })
      do await frame()
      while (!isDrawn())
      taken.push(performance.now() - began)
    }
    return taken
  })()`)
}

async function firstHit(page: Page, text: string): Promise<number> {
  const box = page.locator('.tasks-search')
  await box.fill('')
  await page.locator('table[aria-label=Hits]').waitFor({ state: 'detached', timeout: WAIT_MS })
  const began = performance.now()
  await box.fill(text)
  await page.locator('table[aria-label=Hits] [data-row]').first().waitFor({ timeout: WAIT_MS })
  return performance.now() - began
}

/** The most memory that the process had so far. */
function highestMb(pid: number): number {
  const [, kb] = /^VmHWM:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
  return Math.round(Number(kb) / 1000)
}

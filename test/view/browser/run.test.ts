import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Runners, type TaskResponse } from 'manyworlds'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { launchBrowser, seriousViolations, startView, type View } from './harness.ts'
import { arrived, guide, walker } from './run-agents.ts'

const MAKE_STORE = fileURLToPath(new URL('../../../bench/view/make-store.ts', import.meta.url))
const store = mkdtempSync(join(tmpdir(), 'mw-view-run-'))
const HOSTILE = '<img src=x onerror="window.pwned=1"> \u202eevil\u001b[31m'
const TASKS = 40
const FAILED = Array.from({ length: TASKS }, (_, room) => room).filter((room) => room % 7 === 3 && room !== 1).length
let browser: Browser
let view: View
/** The responses of the run `early`. */
let ended: readonly TaskResponse[]

const walks = (ms: number) =>
  Array.from({ length: TASKS }, (_, room) =>
    room === 1
      ? { id: HOSTILE, agent: guide, input: { room: 1, ms } }
      : { id: `walk-${room}`, agent: walker, input: { room, ms: ms + 5 * room } },
  )

beforeAll(async () => {
  for (const runId of ['early', 'late']) {
    const config = { runId, store, workerNum: 2, concurrency: 4, progress: false, grade: arrived }
    const responses = await Runners.runTask(walks(1), config)
    if (runId === 'early') ended = [...responses.values()]
  }
  writeFileSync(join(store, 'broken.sqlite'), 'this is no database')
  view = await startView([store])
  browser = await launchBrowser()
}, 120_000)

afterAll(async () => {
  await browser?.close()
  await view?.[Symbol.asyncDispose]()
  await Runners.shutdown()
  rmSync(store, { recursive: true, force: true })
})

/** Tests are compiled without the types of browsers. */
interface Scroller {
  scrollTop: number
}
interface Canvas {
  readonly width: number
  readonly height: number
  getContext(kind: '2d'): {
    getImageData(x: number, y: number, width: number, height: number): { data: { buffer: ArrayBuffer } }
  }
}

interface Opened {
  readonly width?: number
  readonly theme?: 'light' | 'dark'
  readonly url?: string
}

async function open(hash: string, { width = 1280, theme = 'light', url = view.url }: Opened = {}): Promise<Page> {
  const page = await browser.newPage({ viewport: { width, height: 900 }, colorScheme: theme })
  const problems: string[] = []
  page.on('pageerror', (error) => problems.push(String(error)))
  page.on('console', (message) => message.type() === 'error' && problems.push(message.text()))
  onTestFinished(async () => {
    await page.close()
    expect(problems).toEqual([])
  })
  await page.goto(`${url}${hash}`)
  return page
}

const taskIds = (page: Page) => page.locator('.tasks > .data-table [data-row-link]').allTextContents()
const body = (page: Page) => page.locator('.tasks > .data-table .data-table-body')
const scrollTop = (page: Page) => body(page).evaluate((element) => (element as unknown as Scroller).scrollTop)
const scrollTo = (page: Page, top: number) =>
  body(page).evaluate((element, top) => {
    ;(element as unknown as Scroller).scrollTop = top
  }, top)
const shownTasks = (page: Page) => page.locator('.tasks [role=status]').first()

test('the list shows runs with their figures, says which are damaged, is sorted, and leads to a comparison', async () => {
  const page = await open('#/')
  const rows = page.locator('.data-table-body tr')
  await expect.poll(() => rows.count()).toBe(3)
  const late = rows.filter({ hasText: 'late' })
  await expect.poll(() => late.textContent()).toMatch(/finished.*85\.0 %/)
  expect(await rows.filter({ hasText: 'broken' }).textContent()).toContain('damaged')
  // No run has tokens or costs.
  const titles = page.locator('.data-table-head th')
  await expect
    .poll(() => titles.allTextContents())
    .toEqual([
      'Choose two runs to compare',
      'Run',
      'Status',
      'Tasks',
      'Success',
      'Reward',
      'Time',
      'Started ↓',
      'Engine',
    ])
  const order = () => page.locator('.data-table-body [data-column=id]').allTextContents()
  const sortedBy = (name: string) => page.getByRole('columnheader', { name, exact: true })
  await sortedBy('Run').getByRole('button').focus()
  for (const [direction, ids] of [
    ['ascending', [/^early/, /^late/, /^broken/]],
    ['descending', [/^late/, /^early/, /^broken/]],
  ] as const) {
    await page.keyboard.press('Enter')
    await expect.poll(() => sortedBy('Run').getAttribute('aria-sort')).toBe(direction)
    await expect.poll(order).toEqual(ids.map((id) => expect.stringMatching(id)))
  }
  await expect.poll(() => new URL(page.url()).hash).toBe('#/?sort=-id')
  await page.goto(`${view.url}#/?sort=-tokens`)
  await expect.poll(() => sortedBy('Tokens').getAttribute('aria-sort')).toBe('descending')
  await expect.poll(() => page.getByTitle('The run recorded no tokens').count()).toBe(2)
  expect(await page.locator('.runs-order').textContent()).toContain('Sorted by tokens')
  await page.getByRole('button', { name: 'Newest first' }).click()
  await expect.poll(() => sortedBy('Started').getAttribute('aria-sort')).toBe('descending')
  await expect.poll(() => titles.allTextContents()).not.toContain('Tokens')
  await page.getByRole('searchbox').fill('LOCAL fin')
  await expect.poll(() => rows.count()).toBe(2)
  await page.getByRole('checkbox', { name: 'late' }).check()
  await page.getByRole('checkbox', { name: 'early' }).check()
  await page.getByRole('link', { name: 'Compare the two' }).click()
  await expect.poll(() => new URL(page.url()).hash).toBe('#/compare/early/late')
})

test('tasks are filtered, sorted and opened; the way back shows the same', async () => {
  const page = await open('#/run/early')
  await expect.poll(() => shownTasks(page).textContent()).toBe(`${TASKS} tasks`)
  // The sub-task of the guide is hidden at first.
  await page.getByRole('checkbox', { name: 'sub-tasks' }).check()
  await expect.poll(() => shownTasks(page).textContent()).toBe(`${TASKS + 1} tasks`)
  await page.getByRole('checkbox', { name: 'sub-tasks' }).uncheck()
  await page.locator('.causes-row').click()
  await expect.poll(() => shownTasks(page).textContent()).toBe(`${FAILED} of ${TASKS} tasks`)
  await page.getByRole('button', { name: 'Run time' }).click()
  // On a busy machine, a short walk may take longer than a long one.
  const slowest = [...ended].filter(({ success }) => !success).sort((a, b) => b.timing.runMs - a.timing.runMs)
  await expect.poll(async () => (await taskIds(page))[0]).toBe(slowest[0]!.id)
  await page.keyboard.press('/')
  await page.keyboard.type('WALK-3')
  const found = slowest.map(({ id }) => id).filter((id) => id.startsWith('walk-3'))
  expect(found).toHaveLength(3)
  await expect.poll(() => taskIds(page)).toEqual(found)
  await page.locator('.tasks > .data-table [data-row-link]').first().focus()
  await page.keyboard.press('ArrowDown')
  await page.keyboard.press('Enter')
  await expect.poll(() => page.url()).toMatch(new RegExp(`#/run/early/task/${found[1]}$`))
  await page.goBack()
  await expect.poll(() => taskIds(page)).toEqual(found)
})

test('a range of a distribution filters the table', async () => {
  const page = await open('#/run/early')
  await expect.poll(() => shownTasks(page).textContent()).toBe(`${TASKS} tasks`)
  const bar = page.locator('.distribution-bars').first().locator('button').last()
  const told = /: (\d+) task/.exec((await bar.getAttribute('aria-label')) ?? '')
  await bar.click()
  await expect.poll(() => shownTasks(page).textContent()).toBe(`${told?.[1]} of ${TASKS} tasks`)
})

test('a search finds texts of steps, errors and answers', async () => {
  const page = await open('#/run/early')
  await page.getByRole('searchbox', { name: 'Search in' }).fill('door of room 31')
  await expect.poll(() => page.locator('.hits [role=status]').textContent()).toContain('1 hit in 1 task')
  expect(await page.locator('.hits mark').textContent()).toBe('door of room 31')
  await expect.poll(() => taskIds(page)).toEqual(['walk-31'])
  await page.getByRole('searchbox', { name: 'Search in' }).fill('a lamp')
  await expect.poll(() => page.locator('.hits .data-table-body').textContent()).toContain('<b>a lamp</b>')
})

test('hostile ids and errors are shown, never run', async () => {
  const page = await open('#/run/early?sort=id')
  await expect.poll(() => page.locator('.tasks').textContent()).toContain('<U+202E>evil<ESC>[31m')
  await expect.poll(() => page.locator('.causes').textContent()).toContain('<script>locked</script>')
  expect(await page.evaluate('window.pwned')).toBeUndefined()
  expect(await page.locator('main img, main script').count()).toBe(0)
})

test('a long error message is folded, in the list of causes and on the page of a task', async () => {
  const page = await open('#/run/early')
  const height = async (selector: string) => (await page.locator(selector).boundingBox())!.height
  for (const [hash, message] of [
    ['#/run/early', '.causes-text'],
    ['#/run/early/task/walk-3', '.clamp:has(> div > .error-message)'],
  ] as const) {
    await page.goto(`${view.url}${hash}`)
    const button = page.getByRole('button', { name: 'Show more' })
    await button.focus()
    await expect.poll(() => height(message)).toBeLessThan(150)
    await page.keyboard.press('Enter')
    expect(await page.getByRole('button', { name: 'Show less' }).getAttribute('aria-expanded')).toBe('true')
    // A cause is cut, but not at two lines.
    await expect.poll(() => height(message)).toBeGreaterThan(1000)
    await page.keyboard.press('Enter')
    await expect.poll(() => height(message)).toBeLessThan(150)
  }
  // Unfolding is not choosing.
  await page.goto(`${view.url}#/run/early`)
  await page.getByRole('button', { name: 'Show more' }).click()
  expect(new URL(page.url()).hash).toBe('#/run/early')
})

test('a run is shown as it goes on, with the worker that is killed on the way', async () => {
  const list = await open('#/')
  const killed = join(store, 'killed')
  /** The last tasks go on until this file exists: the run cannot end before it was seen. */
  const seen = join(store, 'seen')
  const moreOf = (place: number) => (place === 20 ? { killOnce: killed } : place >= TASKS - 4 ? { until: seen } : {})
  const going = Runners.runTask(
    walks(400).map((task, place) => ({ ...task, input: { ...task.input, ...moreOf(place) } })),
    { runId: 'live', store, workerNum: 2, concurrency: 2, progress: false },
  )
  const row = list.locator('.data-table-body tr', { hasText: 'live' })
  await expect.poll(() => row.textContent()).toMatch(/running.* of 40/)
  const page = await open('#/run/live')
  await expect.poll(() => page.locator('.run-header').textContent()).toMatch(/tasks\/s · about .* left/)
  await expect.poll(() => page.locator('.tasks-states').textContent()).toContain('running')
  await scrollTo(page, 60)
  writeFileSync(seen, '')
  await going
  await expect.poll(() => page.locator('.run-header').textContent()).toMatch(/finished.*40 of 40 tasks done/)
  await expect.poll(() => row.textContent()).toContain('finished')
  // Live changes do not move what somebody reads.
  expect(await scrollTop(page)).toBe(60)
  await page.getByText('Workers as a table').click()
  const workers = page.locator('.timeline-rows tbody tr')
  await expect.poll(() => workers.count()).toBe(3)
  expect((await workers.allTextContents()).filter((text) => text.includes('lost'))).toHaveLength(1)
  // The same figures after a reload: events and rows agree.
  const before = await workers.allTextContents()
  await page.reload()
  await page.getByText('Workers as a table').click()
  await expect.poll(() => workers.allTextContents()).toEqual(before)
  // A block of an interrupted attempt leads to that attempt, not to the one that counts.
  await page.locator('.timeline-canvas').focus()
  const told = page.locator('.timeline-legend')
  expect(await told.textContent()).toMatch(/interrupted: its worker or session ended.*worker lost/)
  const ways = [...Array(40).fill('ArrowRight'), 'ArrowDown', ...Array(40).fill('ArrowLeft')]
  for (const key of ways) {
    await page.keyboard.press(key)
    if (/walk-\d+ interrupted/.test((await told.textContent()) ?? '')) break
  }
  expect(await told.textContent()).toMatch(/walk-\d+ interruptedattempt 1, .* on local-\d .*lost: signal SIGKILL/)
  await page.keyboard.press('Enter')
  await expect.poll(() => page.url()).toMatch(/task\/walk-\d+\?attempt=1$/)
  await expect.poll(() => page.getByRole('region', { name: 'Answer' }).textContent()).toContain('was interrupted')
})

test('the timeline is drawn, and leads from failure to failure by keyboard', async () => {
  const page = await open('#/run/early')
  const canvas = page.locator('.timeline-canvas')
  await canvas.focus()
  await page.keyboard.press('f')
  await expect.poll(() => page.locator('.timeline-legend').textContent()).toMatch(/walk-\d+ failed/)
  const colors = () =>
    canvas.evaluate((element) => {
      const drawn = element as unknown as Canvas
      const { data } = drawn.getContext('2d').getImageData(0, 0, drawn.width, drawn.height)
      return new Set(new Uint32Array(data.buffer)).size
    })
  await expect.poll(colors).toBeGreaterThan(3)
  await page.keyboard.press('Enter')
  await expect.poll(() => page.url()).toMatch(/#\/run\/early\/task\/walk-\d+/)
})

test('a hundred thousand tasks are all there, and answer at once', { timeout: 240_000 }, async () => {
  const folder = mkdtempSync(join(tmpdir(), 'mw-view-many-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const made = spawn(process.execPath, [MAKE_STORE, '--tasks', '100000', '--steps', '0', folder], { stdio: 'ignore' })
  expect((await once(made, 'exit'))[0]).toBe(0)
  await using many = await startView([folder])
  const page = await open('#/run/made', { url: many.url })
  await expect.poll(() => shownTasks(page).textContent()).toBe('100,000 tasks')
  await scrollTo(page, 1e9)
  await expect.poll(async () => (await taskIds(page)).at(-1)).toBe('question-025000@4')
  expect(await body(page).locator('tr').count()).toBeLessThan(100)
  await page.getByRole('button', { name: 'Run time' }).click()
  await scrollTo(page, 0)
  const times = page.locator('.tasks [data-column=runMs]')
  await expect.poll(() => times.first().textContent()).toMatch(/^[45]\.\d s$/)
  await expect.poll(() => page.locator('.timeline [role=status]').first().textContent()).toMatch(/^10\d,\d+ attempts$/)
  // Generous, and the best of five, because other tests run at the same time; `npm run bench:view` measures. Every second
  // click takes the filter off again.
  let best = Number.POSITIVE_INFINITY
  for (let clicks = 0; clicks < 5; clicks++) {
    const ms = await page.evaluate<number>(`new Promise((done) => {
      const began = performance.now()
      document.querySelector('.tasks-states button:nth-child(2)').click()
      requestAnimationFrame(() => setTimeout(() => done(performance.now() - began)))
    })`)
    best = Math.min(best, ms)
  }
  expect(best).toBeLessThan(1000)
  await expect.poll(() => shownTasks(page).textContent()).toMatch(/^\d,\d+ of 100,000 tasks$/)
  // Before its server ends.
  await page.close()
})

/** Both themes and all widths, but not all pairs: colors do not depend on the width, nor the layout on the theme. */
const LOOKS = [
  ['light', 400],
  ['dark', 1280],
  ['light', 2500],
] as const

for (const [theme, width] of LOOKS)
  test(`axe finds nothing serious, and nothing is wider than the window: ${theme}, ${width} px`, {
    timeout: 180_000,
  }, async () => {
    for (const hash of ['#/?sort=-tokens', '#/run/early?text=lamp&state=success']) {
      const page = await open(hash, { theme, width })
      await expect.poll(() => page.locator('.data-table-body tr').count()).toBeGreaterThan(2)
      await page.evaluate('for (const one of document.querySelectorAll("details")) one.open = true')
      if (hash.startsWith('#/run')) await expect.poll(() => page.locator('.hits mark').count()).toBeGreaterThan(0)
      expect(await seriousViolations(page)).toEqual([])
      expect(await page.evaluate('document.documentElement.scrollWidth - innerWidth')).toBeLessThanOrEqual(0)
    }
  })

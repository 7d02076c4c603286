import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { Runners } from 'manyworlds'
import { StoredTraining } from 'manyworlds/runs'
import { DistributedTrainingPipeline } from 'manyworlds/train'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { driver, lightsTasks } from '../../agents/lights.ts'
import { launchBrowser, seriousViolations, startView, type View } from './harness.ts'

/** Tests are compiled without the types of browsers. */
interface Canvas {
  readonly width: number
  readonly clientWidth: number
  toDataURL(): string
}

const DRIVER = fileURLToPath(new URL('../../train/drivers/train-lights.ts', import.meta.url))
const EPOCHS = 5
const store = mkdtempSync(join(tmpdir(), 'mw-view-training-'))
let browser: Browser
let view: View

beforeAll(async () => {
  const common = { agent: driver, tasks: lightsTasks(60), store, seed: 5, rollouts: 4, tasksPerUpdate: 4 } as const
  for (const [runId, lr] of [
    ['fast', 0.3],
    ['slow', 0.01],
  ] as const) {
    const pipeline = new DistributedTrainingPipeline({ ...common, runId, tasksPerEpoch: 12, algorithm: { lr } })
    for await (const _ of pipeline.train({ epochs: EPOCHS }));
  }
  await Runners.shutdown()
  view = await startView([store])
  browser = await launchBrowser()
}, 120_000)

afterAll(async () => {
  await browser?.close()
  await view?.[Symbol.asyncDispose]()
  rmSync(store, { recursive: true, force: true })
})

/** A page with this hash. An error in it fails the test. */
async function open(hash: string, options: Parameters<Browser['newPage']>[0] = {}): Promise<Page> {
  const page = await browser.newPage(options)
  const errors: unknown[] = []
  page.on('pageerror', (error) => errors.push(error))
  onTestFinished(async () => {
    await page.close()
    expect(errors).toEqual([])
  })
  await page.goto(`${view.url}${hash}`)
  return page
}

const chart = (page: Page, title: string) =>
  page.locator('figure.chart').filter({ has: page.getByRole('heading', { name: title, exact: true }) })

/** What is drawn when nothing changes any more: a chart is drawn again when its page has its size. */
async function settled(pixels: () => Promise<string>): Promise<string> {
  let last = await pixels()
  for (let same = 0; same < 3; ) {
    await sleep(200)
    const now = await pixels()
    same = now === last ? same + 1 : 0
    last = now
  }
  return last
}

const withoutScrollbar = (page: Page) => page.evaluate('document.documentElement.scrollWidth <= innerWidth')

test('the cursor moves by keys, tells stored figures, and leads to the episodes of a version', async () => {
  const page = await open('#/training/fast')
  using training = StoredTraining.open('fast', { store })
  const updates = training.updates()
  await chart(page, 'Solved').locator('canvas').waitFor()
  await expect
    .poll(() => page.getByRole('slider').getAttribute('aria-valuetext'))
    .toContain(`Update ${updates.length - 1}`)
  for (let times = 0; times < 3; times++) await page.keyboard.press('ArrowLeft')
  const at = updates.at(-4)!
  const { metrics } = at.report as unknown as { metrics: Record<string, number> }
  const entropy = new Intl.NumberFormat('en-US', { maximumSignificantDigits: 4 }).format(metrics.entropy!)
  await expect.poll(() => page.getByRole('slider').getAttribute('aria-valuetext')).toContain(`Entropy ${entropy}`)
  await expect.poll(() => chart(page, 'Entropy').locator('.chart-value').textContent()).toBe(entropy)
  await page.keyboard.press('Enter')
  const card = page.getByRole('region', { name: `Update ${at.number}` })
  expect(await card.textContent()).toContain(`learned from ${at.members.length} episodes`)
  expect(await card.getByRole('link', { name: 'Episodes of this update' }).getAttribute('href')).toMatch(
    new RegExp(`#/run/fast\\.u${String(at.number).padStart(5, '0')}$`),
  )
  expect(await card.getByRole('link', { name: 'of version' }).getAttribute('href')).toContain(
    `?version=${at.versionIn}`,
  )
  await expect.poll(() => page.url()).toContain(`update=${at.number}`)
  await page.keyboard.press('Escape')
  await expect.poll(() => card.count()).toBe(0)
})

test('a click on a point opens its update; a drag zooms all charts, and 0 shows all again', async () => {
  const page = await open('#/training/fast', { viewport: { width: 1600, height: 1000 } })
  const over = chart(page, 'Solved').locator('.u-over')
  await over.click({ position: { x: 3, y: 60 } })
  const card = page.getByRole('region', { name: 'Update 0', exact: true })
  await card.waitFor()
  await page.keyboard.press('Escape')
  await card.waitFor({ state: 'detached' })
  const pixels = () =>
    chart(page, 'Entropy')
      .locator('canvas')
      .evaluate((canvas: Canvas) => canvas.toDataURL())
  const before = await settled(pixels)
  const box = (await over.boundingBox())!
  await page.mouse.move(box.x + box.width * 0.5, box.y + 50)
  await page.mouse.down()
  await page.mouse.move(box.x + box.width * 0.8, box.y + 50, { steps: 5 })
  await page.mouse.up()
  await page.getByRole('button', { name: 'Show all updates' }).waitFor()
  await expect.poll(pixels).not.toBe(before)
  await page.keyboard.press('0')
  await page.mouse.move(1, 1)
  await expect.poll(pixels).toBe(before)
})

test('charts follow the theme, smoothing, the scale and the width', async () => {
  const page = await open('#/training/fast?smooth=5', { colorScheme: 'light', deviceScaleFactor: 2 })
  const canvas = chart(page, 'Entropy').locator('canvas')
  const pixels = () => canvas.evaluate((one: Canvas) => one.toDataURL())
  await canvas.waitFor()
  // Sharp on a display with two pixels for each of CSS.
  expect(await canvas.evaluate((one: Canvas) => one.width / one.clientWidth)).toBeCloseTo(2, 1)
  const light = await settled(pixels)
  await page.emulateMedia({ colorScheme: 'dark' })
  await expect.poll(pixels).not.toBe(light)
  const dark = await settled(pixels)
  await page.getByRole('button', { name: 'Log scale' }).click()
  await expect.poll(pixels).not.toBe(dark)
  await page.getByLabel('Smoothing').selectOption('1')
  await expect.poll(() => page.url()).not.toContain('smooth')
  for (const width of [400, 2500]) {
    await page.setViewportSize({ width, height: 900 })
    await expect.poll(() => withoutScrollbar(page)).toBe(true)
    await expect
      .poll(() => chart(page, 'Entropy').evaluate((one) => one.clientWidth - one.querySelector('canvas')!.clientWidth))
      .toBeLessThan(4)
  }
})

test('versions, evaluations, lanes and all numbers are there as text', async () => {
  const page = await open('#/training/fast')
  using training = StoredTraining.open('fast', { store })
  const { best } = training.overview()
  const versions = page.getByRole('region', { name: 'Versions' })
  expect(await versions.getByRole('row').filter({ hasText: 'best' }).textContent()).toContain(`${best} ★ best`)
  expect(await versions.getByRole('link', { name: 'validation' }).count()).toBe(
    training.evaluations().filter(({ split }) => split === 'validation').length,
  )
  const lanes = await page.getByRole('img', { name: /Collecting and learning over time/ }).getAttribute('aria-label')
  expect(lanes).toContain('never both at once')
  await page.getByText('Table of numbers').click()
  const rows = page.getByRole('row').filter({ has: page.locator('th[scope=row]') })
  await expect.poll(() => rows.count()).toBe(training.updates().length)
  expect(await seriousViolations(page)).toEqual([])
})

test('trainings are drawn over each other, with the settings that differ', async () => {
  const page = await open('#/trainings/fast/slow')
  const settings = page.getByRole('region', { name: 'Settings that differ' })
  await settings.waitFor()
  const rows = await settings.getByRole('row').allTextContents()
  expect(rows).toEqual(['Settingfastslow', 'algorithm.lr0.30.01'])
  const listed = chart(page, 'Solved').getByRole('listitem')
  await expect
    .poll(() => listed.allTextContents())
    .toEqual([expect.stringMatching(/^fast\d/), expect.stringMatching(/^slow\d/)])
  await page.getByRole('checkbox', { name: 'slow' }).uncheck()
  await expect.poll(() => listed.count()).toBe(1)
  expect(await seriousViolations(page)).toEqual([])
})

test('two runs: a verdict, flips first with links to both tasks, and filters', async () => {
  using training = StoredTraining.open('fast', { store })
  const last = training.evaluations().findLast(({ split }) => split === 'test')!
  const page = await open(`#/compare/fast.v00000.test/${last.run}`)
  await expect.poll(() => page.getByRole('heading', { level: 1 }).textContent()).toContain('95 % interval')
  const rows = page
    .getByRole('region', { name: 'Tasks' })
    .getByRole('row')
    .filter({ has: page.getByRole('link') })
  const flips = Number((await page.getByRole('button', { name: /^Flips/ }).textContent())!.match(/\d+/)![0])
  expect(flips).toBeGreaterThan(0)
  const changes = await rows.locator('td:nth-child(2)').allTextContents()
  expect(changes.slice(0, flips).every((text) => /to (un)?solved/.test(text))).toBe(true)
  expect(changes.slice(flips).every((text) => text === 'same')).toBe(true)
  const id = await rows.first().getByRole('rowheader').textContent()
  const links = await rows
    .first()
    .getByRole('link')
    .evaluateAll((all) => all.map((one) => one.getAttribute('href')))
  // The id leads to the second run.
  const [before, after] = [`#/run/fast.v00000.test/task/${id}`, `#/run/${last.run}/task/${id}`]
  expect(links).toEqual([after, before, after])
  await page.getByRole('button', { name: /^Flips/ }).click()
  await expect.poll(() => rows.count()).toBe(flips)
  await page.getByRole('searchbox').fill('no such id')
  await page.getByText('No task matches the filter').waitFor()
  expect(await seriousViolations(page)).toEqual([])
  await page.setViewportSize({ width: 400, height: 800 })
  await expect.poll(() => withoutScrollbar(page)).toBe(true)
})

test('charts grow while a training learns, without being made anew', { timeout: 240_000 }, async () => {
  const settings = JSON.stringify({ tasks: { delayMs: 100 }, tasksPerEpoch: 40, workerNum: 1 })
  const child = spawn(process.execPath, [DRIVER, store, 'watched', '3', settings], { stdio: 'ignore' })
  const ended = once(child, 'exit')
  onTestFinished(async () => {
    child.kill('SIGKILL')
    await ended
  })
  await expect.poll(() => updatesOf('watched'), { timeout: 60_000, interval: 20 }).toBeGreaterThan(1)
  // It waits while the page is opened, which may take longer than the training.
  child.kill('SIGSTOP')
  const page = await open('#/training/watched')
  const slider = page.getByRole('slider')
  const last = async () => Number(await slider.getAttribute('max'))
  await expect.poll(last).toBeGreaterThan(0)
  const canvas = await chart(page, 'Reward').locator('canvas').elementHandle()
  const before = await last()
  child.kill('SIGCONT')
  await expect.poll(last, { timeout: 60_000 }).toBeGreaterThan(before + 3)
  expect(await canvas!.evaluate((one) => one.isConnected)).toBe(true)
  await ended
  await page.locator('.state-finished').waitFor()
  await expect.poll(last).toBe(updatesOf('watched') - 1)
})

function updatesOf(id: string): number {
  try {
    using training = StoredTraining.open(id, { store })
    return training.updates().length
  } catch {
    return 0
  }
}

import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type RunConfig, Runners } from '../../../dist/index.js'
import { makeReport } from '../../../dist/view/report.js'
import { targetOf } from '../../../dist/view/target.js'
import { deskTasks } from '../../../examples/tool-desk/desk.ts'
import * as agents from '../../agents/view-task.ts'
import { startModelServer } from '../../models/scripted-server.ts'
import { launchBrowser, seriousViolations, startView, type View } from './harness.ts'

let store: string
let view: View
let browser: Browser
let page: Page
/** What the page asked of other machines, and its errors. Both must stay empty. */
const foreign: string[] = []
const problems: string[] = []

beforeAll(async () => {
  store = await mkdtemp(join(tmpdir(), 'manyworlds-view-task-'))
  const server = await startModelServer({ seed: 2 })
  const run = (runId: string, tasks: Parameters<typeof Runners.runTask>[0], config: RunConfig = {}) =>
    Runners.runTask(tasks as never, { store, runId, workerNum: 1, maxAttempts: 1, ...config })
  const models = (model: string) => ({
    m: { baseURL: server.baseURL, model, tokens: true, price: { input: 1, output: 2 } },
  })
  await run('talk', [agents.solver.task('What is it?', { id: 'talk' })], { models: models('tools:2+vllm') })
  await run('bad', [agents.solver.task('Call', { id: 'bad' })], { models: models('bad-tools') })
  await run('panel', [agents.panel.task(agents.MARKDOWN, { id: 'panel' })], { models: models('echo') })
  await run(
    'desk',
    deskTasks({ part: 'train', count: 1, seed: 1 }).map((input) => agents.clerk.task(input, { id: 'desk' })),
  )
  await run('guess', [agents.guesser.task('How many?', { id: 'guess', groundTruth: 2 })], {
    ...{ rollouts: 4, grade: agents.judged, seed: 1 },
  })
  await run('mixed', [
    agents.flaky.task('x', { id: 'flaky', maxAttempts: 2 }),
    agents.failing.task('this', { id: 'failing' }),
    agents.failing.task('crash', { id: 'crash' }),
    agents.parent.task(2, { id: 'parent' }),
  ])
  await run('hostile', [agents.hostile.task(agents.LONG_HOSTILE, { id: '<img src=x onerror=alert(1)>\u202e/?#%' })])
  await run('long', [agents.talkative.task(2000, { id: 'long' })])
  await server.close()
  view = await startView(['--dir', store])
  browser = await launchBrowser()
  page = await browser.newPage({ viewport: { width: 1280, height: 900 } })
  const { origin } = new URL(view.url)
  page.on('request', (request) => request.url().startsWith(origin) || foreign.push(request.url()))
  page.on('pageerror', (error) => problems.push(error.message))
  page.on('console', (message) => message.type() === 'error' && problems.push(message.text()))
}, 180_000)

/** Opens a page of the viewer. The same address with another hash would not load it again. */
async function open(hash: string): Promise<void> {
  await page.goto('about:blank')
  await page.goto(view.url + hash)
}

afterAll(async () => {
  await browser?.close()
  await view?.[Symbol.asyncDispose]()
  await Runners.shutdown()
  await rm(store, { recursive: true, force: true })
})

test('a conversation: prompt and tools folded, calls beside their results, figures, tokens on demand', async () => {
  await open('#/run/talk/task/talk')
  await page.locator('#step-4').waitFor()
  await expect
    .poll(() => page.locator('.bubble-role').allTextContents())
    .toEqual(['user', ...Array(3).fill('assistant')])
  const prompt = page.locator('.folded', { hasText: 'System prompt' })
  expect(await prompt.locator('.folded-inside').isVisible()).toBe(false)
  await prompt.locator('summary').click()
  expect(await prompt.locator('.folded-inside').innerText()).toContain('You are a careful assistant.')
  // Side by side, and one below the other on a narrow page.
  const call = page.locator('#step-1 .call-sides > div')
  const tops = () => call.evaluateAll((sides) => sides.map((side) => Math.round(side.getBoundingClientRect().top)))
  const isBeside = async () => {
    const [left, right] = await tops()
    return left === right
  }
  await expect.poll(isBeside).toBe(true)
  expect(await call.last().innerText()).toContain('The long read')
  await page.setViewportSize({ width: 700, height: 900 })
  await expect.poll(isBeside).toBe(false)
  const [above, below] = await tops()
  expect(below).toBeGreaterThan(above!)
  await page.setViewportSize({ width: 1280, height: 900 })
  await page.locator('#step-4 button', { hasText: 'token' }).click()
  await expect.poll(() => page.locator('.tokens-text').innerText()).toBe('done after 2 calls')
  expect(await page.locator('.tokens-text .token').first().getAttribute('title')).toMatch(
    /id \d+: log-probability -[\d.]+, [\d.]+ %/,
  )
  await expect.poll(() => page.locator('.waterfall-row').count()).toBe(5)
})

test('calls that failed say so in words', async () => {
  await open('#/run/bad/task/bad')
  await page.locator('.call-failed').first().waitFor()
  const words = page.locator('.call-failed .call-error-word')
  await expect.poll(() => words.allTextContents()).toEqual(Array(3).fill('failed'))
  expect(await page.locator('.call-failed').first().innerText()).toContain("unavailable tool 'no-such-tool'")
})

test('sub-agents are branches, messages are Markdown', async () => {
  await open('#/run/panel/task/panel')
  await page.locator('.branch-head').nth(1).waitFor()
  await expect.poll(() => page.locator('.branch-head strong').allTextContents()).toEqual(['talker', 'critic'])
  const cells = page.locator('.bubble-assistant .md-table td')
  await expect.poll(() => cells.allTextContents()).toEqual(Array(2).fill(['Oslo', '0.7', 'Rome', '2.8']).flat())
  const link = page.locator('.bubble-assistant a', { hasText: 'the source' }).first()
  expect(await link.getAttribute('rel')).toBe('noopener noreferrer')
  await page.locator('.bubble-assistant .text-switch').first().click()
  expect(await page.locator('.bubble-assistant .text-plain').first().innerText()).toContain('**42**')
})

test('actions show candidates and the probability of the chosen one', async () => {
  await open('#/run/desk/task/desk')
  await page.locator('#step-0 .candidate-chosen').waitFor()
  expect(await page.locator('#step-0 .candidate').count()).toBeGreaterThan(2)
  expect(await page.locator('#step-0 .candidate-chosen').innerText()).toMatch(/\d+\.\d %$/)
})

test('attempts: the final one first, earlier ones with their errors and logs', async () => {
  await open('#/run/mixed/task/flaky')
  await page.locator('.attempts button').nth(1).waitFor()
  expect(await page.locator('#outcome-title').innerText()).toBe('Answer')
  await page.locator('.attempts button').first().click()
  await expect.poll(() => page.locator('#outcome-title').innerText()).toBe('Error')
  expect(await page.locator('.error-cause').innerText()).toContain('TypeError: the disk is full')
  await expect.poll(() => page.locator('.logs').innerText()).toContain('<ESC>[31mattempt 1')
  await expect.poll(() => page.url()).toContain('attempt=1')
})

test('keys lead to failures and to steps', async () => {
  await open('#/run/mixed/task/flaky')
  const position = page.locator('.neighbours button', { hasText: 'next failure' })
  await expect.poll(() => position.isEnabled()).toBe(true)
  await page.keyboard.press('n')
  await page.locator('h1', { hasText: 'failing' }).waitFor()
  await expect.poll(() => position.isEnabled()).toBe(true)
  await page.keyboard.press('n')
  await page.locator('h1', { hasText: 'crash' }).waitFor()
  await expect.poll(() => page.locator('[aria-label="Previous task"]').isEnabled()).toBe(true)
  await page.keyboard.press('p')
  await page.locator('h1', { hasText: 'failing' }).waitFor()
  await page.keyboard.press('?')
  expect(await page.locator('dialog').innerText()).toContain('next failure of the run')
  await page.keyboard.press('Escape')
  await page.locator('#step-0').waitFor()
  await page.keyboard.press('j')
  await page.locator('#step-0.step-marked').waitFor()
})

test('sub-tasks have pages of their own', async () => {
  await open('#/run/mixed/task/parent')
  await page.locator('.task-link a').first().click()
  await page.locator('dt', { hasText: 'sub-task of' }).waitFor()
  expect(await page.locator('h1').innerText()).toBe('parent/1.1')
})

test('rollouts of a group side by side, with grade and answer', async () => {
  await open('#/run/guess/task/guess')
  await page.locator('.rollout input').nth(3).waitFor()
  await page.locator('.rollout input').nth(1).check()
  await page.locator('.rollout input').nth(3).check()
  await page.locator('.rollout-column .rollout-lines li').nth(3).waitFor()
  expect(await page.locator('.rollout-column h3').allTextContents()).toEqual(['guess@2', 'guess@4'])
  expect(await page.locator('.rollout-answer').first().innerText()).toMatch(/It is \d\./)
  expect(await page.locator('.outcome-grade').innerText()).toContain('correct')
})

test('hostile content is shown and never run', async () => {
  await open(`#/run/hostile/task/${encodeURIComponent('<img src=x onerror=alert(1)>\u202e/?#%')}`)
  await page.locator('#step-4').waitFor({ timeout: 30_000 })
  expect(await page.locator('h1').innerText()).toBe('<img src=x onerror=alert(1)><U+202E>/?#%')
  expect(await page.locator('#step-0').innerText()).toContain('<script>window.hacked = 1</script>')
  expect(await page.locator('#step-0').innerText()).toContain('abc<U+202E>txt.exe <ESC>[31mred')
  // The whole text comes when asked for, and nothing of it is folded then.
  await page.locator('#step-4 .cut-note button').click()
  await expect.poll(() => page.locator('#step-4 .cut-note').count()).toBe(0)
  for (const name of ['Input', 'Answer']) {
    const part = page.getByRole('region', { name, exact: true })
    expect(await part.innerText()).not.toContain('the last words')
    await part.getByRole('button', { name: 'Show all (120 kB)' }).focus()
    await page.keyboard.press('Enter')
    await expect.poll(() => part.innerText()).toContain('the last words')
    expect(await part.locator('.clamp-cut, .cut-note').count()).toBe(0)
  }
  expect(await page.evaluate('window.hacked')).toBeUndefined()
  expect(await page.locator('main img, main script, main a[href^="javascript"]').count()).toBe(0)
  expect(foreign).toEqual([])
  expect(problems).toEqual([])
}, 90_000)

test('a report says which texts it has only the beginning of', async () => {
  const { html, leftOut } = await makeReport(targetOf('hostile', store))
  expect(leftOut).toEqual([
    expect.stringMatching(/^the rest of texts with more than 20,000 characters, of 1 task: .*\(input, answer/),
  ])
  await writeFile(join(store, 'report.html'), html)
  await page.goto(pathToFileURL(join(store, 'report.html')).href)
  await page.locator('[data-row-link]').first().click()
  const note = page.getByRole('region', { name: 'Answer' }).locator('.cut-note')
  expect(await note.innerText()).toMatch(/^100,\d+ characters of the answer are not in this report\.$/)
})

test('2,000 steps: an address leads to one, and only steps near it are drawn', async () => {
  await open('#/run/long/task/long?attempt=1&step=1500')
  await page.locator('#step-1500.step-marked').waitFor({ timeout: 30_000 })
  const top = () => page.locator('#step-1500').evaluate((step) => step.getBoundingClientRect().top)
  await expect.poll(top).toSatisfy((pixels: number) => pixels > 0 && pixels < 120)
  expect(await page.locator('article.step').count()).toBeLessThan(200)
  await page.keyboard.press('j')
  await page.locator('#step-1501.step-marked').waitFor()
  await expect.poll(() => page.url()).toContain('step=1501')
})

test('steps of a running task appear, then its answer', { timeout: 120_000 }, async () => {
  const until = join(store, 'seen')
  const running = Runners.runTask(agents.slow.task({ ms: 400, until }, { id: 'slow' }), {
    ...{ store, runId: 'live', workerNum: 1 },
  })
  await expect
    .poll(
      async () => {
        await open('#/run/live/task/slow')
        return page
          .locator('#step-0')
          .waitFor({ timeout: 5000 })
          .then(
            () => true,
            () => false,
          )
      },
      { timeout: 60_000 },
    )
    .toBe(true)
  const steps = async () => Number.parseInt(await page.locator('#conversation-title .dim').innerText(), 10)
  const first = await steps()
  await expect.poll(steps).toBeGreaterThan(first + 2)
  expect(await page.locator('h1 + .state').innerText()).toBe('running')
  await writeFile(until, '')
  const { trajectory } = await running
  await expect.poll(() => page.locator('main').innerText()).toContain('done slowly')
  await expect.poll(steps).toBe(trajectory.length)
})

test.each([400, 2500])(
  'at %i px nothing is wider than the page, and axe finds nothing serious',
  async (width) => {
    await page.setViewportSize({ width, height: 900 })
    for (const [hash, theme] of [
      ['#/run/talk/task/talk?step=4', 'light'],
      ['#/run/panel/task/panel', 'dark'],
      ['#/run/guess/task/guess?beside=1,2', 'dark'],
      ['#/run/desk/task/desk', 'light'],
      ['#/run/mixed/task/flaky?attempt=1', 'light'],
      ['#/run/bad/task/bad', 'dark'],
    ] as const) {
      await page.emulateMedia({ colorScheme: theme })
      await open(hash)
      await page.locator('.step').first().waitFor()
      expect(await page.evaluate('document.documentElement.scrollWidth - innerWidth'), hash).toBeLessThanOrEqual(0)
      expect(await seriousViolations(page), hash).toEqual([])
    }
  },
  120_000,
)

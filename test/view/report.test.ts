import { execFileSync } from 'node:child_process'
import { copyFileSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { gunzipSync } from 'node:zlib'
import { Runners } from 'manyworlds'
import { DistributedTrainingPipeline } from 'manyworlds/train'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Report, type ReportedRun, STATES } from '../../dist/view/api.js'
import { makeReport } from '../../dist/view/report.js'
import { targetOf } from '../../dist/view/target.js'
import { type OpenedTask, openedTasks } from '../../web/src/source/report-parts.ts'
import { driver, lightsTasks } from '../agents/lights.ts'
import { shown } from '../agents/viewed.ts'
import { MAIN, manyworlds } from '../cli/manyworlds.ts'
import { noTerminals, openTerminal } from '../terminal/terminal.ts'
import { launchBrowser, seriousViolations, startView } from './browser/harness.ts'

const MAKE_STORE = fileURLToPath(new URL('../../bench/view/make-store.ts', import.meta.url))
const TASKS = 300
/** More than the list of what was left out and the smallest part that did not fit take. */
const SMALL_PART_BYTES = 6000
const folder = mkdtempSync(join(tmpdir(), 'mw-report-'))
let browser: Browser

beforeAll(async () => {
  execFileSync(process.execPath, [MAKE_STORE, '--tasks', String(TASKS), '--steps', '10', folder])
  const pipeline = new DistributedTrainingPipeline({
    ...{ agent: driver, tasks: lightsTasks(60), store: folder, runId: 'lights', seed: 5, rollouts: 4 },
    ...{ tasksPerUpdate: 4, tasksPerEpoch: 12, algorithm: { lr: 0.3 } },
  })
  for await (const _ of pipeline.train({ epochs: 3 }));
  await Runners.shutdown()
  browser = await launchBrowser()
}, 120_000)

afterAll(async () => {
  await browser?.close()
  rmSync(folder, { recursive: true, force: true })
})

const dataOf = (html: string): Report => {
  const [, base64] = /id="report">([^<]*)</.exec(html)!
  return JSON.parse(gunzipSync(Buffer.from(base64!, 'base64')).toString())
}

const openedIn = ({ parts }: Report, run: string) => [...openedTasks(parts).get(run)!.entries()]

const hasSteps = ({ steps }: OpenedTask) => Object.values(steps).some((lines) => lines.length > 0)

/** Tasks that did not succeed or were not solved, by the table of a report. */
function failedIn({ tasks }: ReportedRun): Set<string> {
  return new Set(
    tasks.flatMap(({ id, state, solved }) =>
      id.filter((_, row) => STATES[state[row]!] !== 'success' || solved[row] === 0),
    ),
  )
}

test('a report contains all tasks with their steps and logs, if they fit', async () => {
  const { html, bytes, leftOut } = await makeReport(targetOf('made', folder))
  expect(leftOut).toEqual([])
  expect(bytes).toBe(Buffer.byteLength(html))
  const report = dataOf(html)
  const opened = openedIn(report, 'made')
  expect(opened).toHaveLength(report.runs.made!.tasks.reduce((sum, { id }) => sum + id.length, 0))
  expect(opened.filter(([, one]) => hasSteps(one)).length).toBeGreaterThan(TASKS / 2)
  expect(opened.some(([, { task }]) => task.attempts.some(({ logs }) => logs.lines.length > 0))).toBe(true)
})

test('a small report leaves out steps of successful tasks first, then logs, then steps of failed ones, and says so', async () => {
  const whole = await makeReport(targetOf('made', folder))
  const empty = await makeReport(targetOf('made', folder), { include: 'none' })
  const sizes = [0.8, 0.5, 0.2].map((share) => Math.round(empty.bytes + share * (whole.bytes - empty.bytes)))
  let stepsBefore = Number.POSITIVE_INFINITY
  for (const maxBytes of sizes) {
    const { html, bytes, leftOut } = await makeReport(targetOf('made', folder), { maxBytes })
    expect(bytes).toBeLessThanOrEqual(maxBytes)
    // Nothing is left out that would have fitted.
    expect(bytes).toBeGreaterThan(maxBytes - SMALL_PART_BYTES)
    const report = dataOf(html)
    expect(report.leftOut).toEqual(leftOut)
    expect(leftOut.join()).toMatch(/the steps of [\d,]+ tasks that succeeded/)
    const failed = failedIn(report.runs.made!)
    const withSteps = openedIn(report, 'made').filter(([, one]) => hasSteps(one))
    // If steps of failed tasks are missing, those of successful ones are here only where nothing larger fits.
    if (leftOut.join().includes('that failed'))
      expect(withSteps.filter(([id]) => !failed.has(id)).length).toBeLessThan(4)
    expect(withSteps.length).toBeLessThan(stepsBefore)
    stepsBefore = withSteps.length
  }
})

test('the choice of steps is kept: of failed tasks only, or of none', async () => {
  const failedOnly = await makeReport(targetOf('made', folder), { include: 'failed' })
  const report = dataOf(failedOnly.html)
  const failed = failedIn(report.runs.made!)
  const withSteps = openedIn(report, 'made').flatMap(([id, one]) => (hasSteps(one) ? [id] : []))
  expect(withSteps.length).toBeGreaterThan(0)
  expect(withSteps.filter((id) => !failed.has(id))).toEqual([])
  const none = await makeReport(targetOf('made', folder), { include: 'none' })
  expect(openedIn(dataOf(none.html), 'made').filter(([, one]) => hasSteps(one))).toEqual([])
  expect(none.leftOut).toContain('the steps of all tasks (--include none)')
})

test('a size that is too small even for the table is refused, with one that is enough', async () => {
  await expect(makeReport(targetOf('made', folder), { maxBytes: 50_000 })).rejects.toMatchObject({
    code: 'CONFIG_INVALID',
    message: expect.stringMatching(/give a larger size, such as --max-size \d+$/),
  })
})

test('texts that are cut are named on the command line and in the report, with the command that prints them', async () => {
  const store = join(folder, 'long')
  const text = 'x'.repeat(50_000)
  const tasks = ['first', 'second'].map((id) => shown.task({ text, log: 'a line' }, { id }))
  await Runners.runTask([...tasks, shown.task({ text: 'short' }, { id: 'short' })], {
    store,
    runId: 'long',
    workerNum: 1,
  })
  const out = join(folder, 'long.html')
  const { stderr } = await manyworlds(['view', 'long', '--dir', store, '--out', out])
  const cut = 'the rest of texts with more than 20,000 characters, of 2 tasks: first (input, answer'
  expect(stderr).toContain(`manyworlds: left out: ${cut}`)
  expect(stderr).toMatch(/to print a task with complete texts: .* show \S+\/long first --json\n$/)
  expect(stderr).not.toContain('--max-size')
  expect(dataOf(readFileSync(out, 'utf8')).leftOut).toEqual([expect.stringContaining(cut)])
})

test('the command writes a report of a run that opens from disk: its table, and a task with its steps', async () => {
  const out = join(folder, 'made.html')
  const words = ['view', 'made', '--dir', folder, '--out', out]
  const written = await manyworlds([...words, '--include', 'failed', '--max-size', '5'])
  expect(written).toMatchObject({ code: 0, stdout: '' })
  expect(written.stderr).toMatch(
    /^manyworlds: .*made\.html: .* [kM]B\nmanyworlds: left out: the steps of successful tasks \(--include failed\)\n$/,
  )
  const page = await browser.newPage()
  const requests: string[] = []
  page.on('request', (request) => requests.push(request.url()))
  await page.goto(pathToFileURL(out).href)
  await page.locator('table[aria-label=Tasks] [data-row]').first().waitFor()
  expect(await page.locator('section.tasks [role=status]').first().innerText()).toContain(`${TASKS} tasks`)
  await page.locator('.tasks-states button', { hasText: 'failed' }).click()
  await page.locator('table[aria-label=Tasks] [data-row-link]').first().click()
  await page.locator('#step-0').waitFor()
  expect(requests.filter((url) => !url.startsWith('data:'))).toEqual([pathToFileURL(out).href])
  // Never over a file that is there, and one clear line for each mistake.
  for (const [more, message] of [
    [[], /already exists; use --force to replace it \[EXPORT_FAILED\]\n$/],
    [['--port', '1'], /--out and --port/],
  ] as const) {
    const refused = await manyworlds([...words, ...more])
    expect(refused.code).not.toBe(0)
    expect(refused.stderr).toMatch(message)
  }
  const smaller = await manyworlds([...words, '--force', '--max-size', '0.6'])
  expect(smaller).toMatchObject({
    code: 0,
    stderr: expect.stringContaining('a larger --max-size than 0.6 includes more\n'),
  })
}, 120_000)

test.skipIf(noTerminals())(
  'a terminal shows how far a report is, and nothing of that afterwards; Ctrl-C leaves no file',
  async () => {
    // Large enough that the row is drawn before the report is done.
    const large = mkdtempSync(join(folder, 'large-'))
    execFileSync(process.execPath, [MAKE_STORE, '--tasks', '2000', '--steps', '10', large])
    const made = (out: string) =>
      openTerminal(process.execPath, [MAIN, 'view', 'made', '--dir', large, '--out', join(folder, out)], { cols: 120 })
    const whole = made('shown.html')
    await whole.waitFor(
      /\d\/2,\d\d\d {2}(table|tasks|steps of failed tasks|steps of other tasks) {2}\S+ [kM]B of 20 MB/,
    )
    expect(await whole.exit).toBe(0)
    expect(whole.screen().join('').trim()).toMatch(/^manyworlds: \S+shown\.html: \S+ [kM]B$/)
    // On a busy machine the report may be made before the key is pressed.
    const codes: unknown[] = []
    while (codes.at(-1) !== 130 && codes.length < 10) {
      rmSync(join(folder, 'stopped.html'), { force: true })
      const stopped = made('stopped.html')
      await stopped.waitFor(/of 20 MB/)
      stopped.ctrlC()
      codes.push(await stopped.exit)
    }
    expect(codes.filter((code) => code !== 0)).toEqual([130])
    expect(readdirSync(folder).filter((name) => name.includes('stopped'))).toEqual([])
  },
)

test('a wrong token shows a page that says what to do, and nothing of the runs', async () => {
  await using view = await startView([folder])
  const page = await browser.newPage()
  const response = await page.goto(view.url.replace(/token=\w+/, 'token=mw_wrong'))
  expect(response!.status()).toBe(401)
  expect(await page.locator('body').innerText()).toContain('manyworlds view')
  expect(await page.locator('body').innerText()).not.toContain('made')
})

test('a store that becomes unreadable is one message in the list of runs, which goes when it is readable again', async () => {
  const store = mkdtempSync(join(folder, 'later-'))
  const file = join(store, 'store.sqlite')
  copyFileSync(join(folder, 'store.sqlite'), file)
  await using view = await startView([store])
  const page = await browser.newPage()
  await page.goto(view.url)
  await page.getByText('made', { exact: true }).first().waitFor()
  copyFileSync(file, `${file}.sound`)
  writeFileSync(`${file}.text`, 'hello')
  renameSync(`${file}.text`, file)
  await page.getByRole('alert').filter({ hasText: 'store.sqlite is a text file' }).waitFor()
  expect(await page.getByRole('alert').innerText()).toContain('NOT_A_STORE')
  expect(await page.getByText('made', { exact: true }).count()).toBeGreaterThan(0)
  renameSync(`${file}.sound`, file)
  await page.getByRole('alert').waitFor({ state: 'detached' })
  await page.close()
})

test('the report of a training opens from disk, without a request, and leads to the episodes that it has', async () => {
  const { html, leftOut } = await makeReport(targetOf('lights', folder))
  const file = join(folder, 'report.html')
  writeFileSync(file, html)
  const page = await browser.newPage()
  const seen: string[] = []
  page.on('request', (request) => seen.push(request.url()))
  page.on('pageerror', (error) => seen.push(String(error)))
  page.on('console', (message) => message.type() === 'error' && seen.push(message.text()))
  await page.goto(pathToFileURL(file).href)
  await page.locator('figure.chart canvas').first().waitFor()
  expect(page.url()).toMatch(/#\/training\/lights$/)
  expect(seen.filter((text) => !text.startsWith('data:'))).toEqual([pathToFileURL(file).href])
  expect(await page.getByRole('note').textContent()).toContain(leftOut[0])
  // Nothing else can be run: the page allows its own script and style by their hashes only.
  await page.evaluate(
    "document.body.append(Object.assign(document.createElement('script'), { text: 'window.ran = 1' }))",
  )
  expect(await page.evaluate('window.ran')).toBe(undefined)
  expect(await seriousViolations(page)).toEqual([])
  const report = dataOf(html)
  const last = report.trainings.lights!.updates.at(-1)!
  expect(Object.keys(report.runs)).toContain(last.run)
})

// Makes the pictures of docs/viewer.md and of the README, from real runs and a real training: npm run screenshots
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type RunConfig, Runners } from 'manyworlds'
import { listTrainings } from 'manyworlds/runs'
import type { BrowserContext } from 'playwright-core'
import { launchBrowser, startView } from '../test/view/browser/harness.ts'
import { CAREFUL, startCountingModel } from './screenshots/counting-model.ts'
import { tasks } from './screenshots/shop.ts'

const WORKERS = 3
const QUESTIONS = 120
const KILL_AFTER = 60

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url))
const images = here('../docs/images')
const folder = mkdtempSync(join(tmpdir(), 'manyworlds-screenshots-'))
const store = join(folder, 'runs')
const model = await startCountingModel()

try {
  await run('shop-before', 'counting-1', true)
  await run('shop-after', CAREFUL, false)
  await train()
  mkdirSync(images, { recursive: true })
  await takePictures()
} finally {
  await Runners.shutdown()
  model.close()
  rmSync(folder, { recursive: true, force: true })
}

/** An evaluation; in one of them, a worker is killed on the way. */
async function run(runId: string, name: string, isKilled: boolean): Promise<void> {
  const config: RunConfig = {
    ...{ store, runId, seed: 1, workerNum: WORKERS, concurrency: 4, rollouts: 2, timeoutMs: 4000, progress: false },
    models: { counting: { baseURL: model.baseURL, model: name, price: { input: 0.4, output: 1.6 } } },
  }
  let done = 0
  for await (const { worker } of Runners.streamTask(tasks(QUESTIONS), config))
    if (++done === KILL_AFTER && isKilled && worker?.pid !== undefined) process.kill(worker.pid, 'SIGKILL')
}

async function train(): Promise<void> {
  const child = spawn(process.execPath, [here('../examples/tool-desk.ts')], {
    cwd: folder,
    env: { ...process.env, MANYWORLDS_STORE: store },
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  const [code] = await once(child, 'exit')
  if (code !== 0) throw new Error(`examples/tool-desk.ts ended with exit code ${code}`)
}

async function takePictures(): Promise<void> {
  await using view = await startView([store])
  const browser = await launchBrowser()
  try {
    const training = listTrainings({ store }).at(-1)!.id
    const picture = async (name: string, hash: string, height: number, theme: 'light' | 'dark' = 'light') => {
      const context = await browser.newContext({ viewport: { width: 1280, height }, colorScheme: theme })
      await show(context, `${view.url}${hash}`, join(images, `${name}.png`))
      await context.close()
    }
    await picture('viewer-runs', '#/', 420)
    await picture('viewer-run', '#/run/shop-before', 1280)
    await picture('viewer-task', '#/run/shop-before/task/shop-004', 1180)
    await picture('viewer-training', `#/training/${training}`, 1000)
    await picture('viewer-compare', '#/compare/shop-before/shop-after', 1000)
  } finally {
    await browser.close()
  }
}

async function show(context: BrowserContext, url: string, path: string): Promise<void> {
  const page = await context.newPage()
  await page.goto(url, { waitUntil: 'domcontentloaded' })
  await page.locator('main').waitFor()
  // Charts are drawn when their data is there; nothing tells when the last one is.
  await page.waitForTimeout(2500)
  await page.screenshot({ path })
}

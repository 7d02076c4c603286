import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { type Browser, chromium, type Page } from 'playwright-core'
import { unpackedChromium } from './unpacked-chromium.ts'

/** A browser and a viewer, for tests, `bench/view.ts` and `scripts/screenshots.ts`. */

const MAIN = fileURLToPath(new URL('../../../dist/cli/main.js', import.meta.url))

/**
 * A real browser. Not with the arguments that its package suggests: they turn off the security of web pages, and with a single process,
 * closing a page ends the browser.
 */
export async function launchBrowser(): Promise<Browser> {
  const args = ['--no-sandbox', '--disable-dev-shm-usage']
  return await chromium.launch({ executablePath: await unpackedChromium(), args, headless: true })
}

export interface View extends AsyncDisposable {
  /** The address of the page, with the token. */
  readonly url: string
  /** The process of the server. */
  readonly pid: number
}

/** A real `manyworlds view`. */
export async function startView(words: readonly string[]): Promise<View> {
  const child = spawn(process.execPath, [MAIN, 'view', ...words, '--no-open', '--port', '0'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const ended = once(child, 'exit')
  for await (const line of createInterface({ input: child.stdout }))
    if (line.startsWith('http'))
      return {
        url: line,
        pid: child.pid!,
        [Symbol.asyncDispose]: async () => {
          child.kill('SIGINT')
          await ended
        },
      }
  throw new Error('`manyworlds view` ended without an address')
}

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core'), 'utf8')

/** What axe finds serious or critical on a page, as text. */
export async function seriousViolations(page: Page): Promise<string[]> {
  await page.evaluate(axe)
  const found = await page.evaluate(async () => {
    const { violations } = await (
      globalThis as unknown as {
        axe: { run(): Promise<{ violations: { id: string; impact: string; nodes: { html: string }[] }[] }> }
      }
    ).axe.run()
    return violations.map(({ id, impact, nodes }) => ({ id, impact, html: nodes[0]!.html }))
  })
  return found
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .map(({ id, html }) => `${id}: ${html}`)
}

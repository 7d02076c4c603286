import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { startLocalSpark } from '../../src/engines/spark/local-spark.ts'
import { childrenOf } from '../support/process-tree.ts'

/** Two waits of at most 5 s each for the server, and time for a busy machine. */
const SETTLES_MS = 15_000

test('kill -9 of the Connect server while workers are kept warm: shutdown settles soon', {
  timeout: 180_000,
}, async () => {
  const folder = mkdtempSync(join(tmpdir(), 'mw-server-gone-'))
  const conf = { 'spark.sql.warehouse.dir': join(folder, 'warehouse'), 'spark.local.dir': folder }
  const spark = await startLocalSpark({ master: 'local[3]', conf }, () => {})
  try {
    const server = childrenOf(process.pid)
    const program = fileURLToPath(new URL('../agents/spark-warm-driver.ts', import.meta.url))
    const driver = spawn(process.execPath, [program, join(folder, 'ledger'), ...server.map(String)], {
      env: { ...process.env, SPARK_REMOTE: spark.remote },
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const ended = new Promise<number | null>((resolve) => driver.once('close', resolve))
    const printed = await text(driver.stdout)
    expect(await ended).toBe(0)
    expect(Number(printed)).toBeLessThan(SETTLES_MS)
  } finally {
    await spark.stop()
    rmSync(folder, { recursive: true, force: true })
  }
})

import { createHash } from 'node:crypto'
import { openCache } from '../store/open-cache.ts'

/**
 * Stores answers without an end and prints the number of each once it is safe: `node cache-writer.ts STORE RUN COUNT NAME`.
 * The n-th key is the same in all processes. Answers are of all sizes, and name who made them.
 */
const [path, runId, count, name] = process.argv.slice(2) as [string, string, string, string]
const run = await openCache(path, runId)
const one = async (number: number) => {
  const key = createHash('sha256').update(String(number)).digest()
  const body = JSON.stringify({ id: `chatcmpl-${number}`, name, text: `${number} `.repeat((number * 997) % 20_000) })
  await run.cache.write(key, 'small', { status: 200, headers: {}, body })
  process.stdout.write(`${number}\n`)
}
for (let number = 0; number < Number(count); number += 8)
  await Promise.all(Array.from({ length: 8 }, (_, i) => one(number + i)))
await run.close({ how: 'finished', error: null })

// Tasks from an async generator, answered as they finish. Some fail, some hang, some need a second attempt.
import { setTimeout as sleep } from 'node:timers/promises'
import { defineAgent, Runners } from 'manyworlds'

type Page = { url: string; kind: 'good' | 'flaky' | 'broken' | 'endless' }

const fetchPage = defineAgent({
  name: 'fetch-page',
  run: async ({ url, kind }: Page, ctx) => {
    await sleep(20 + ctx.random() * 80)
    if (kind === 'broken') throw new Error(`404 for ${url}`)
    if (kind === 'flaky' && ctx.attempt === 1) throw new Error('connection reset')
    // ctx.signal is aborted by the timeout: a task that passes it on ends in peace.
    if (kind === 'endless') await sleep(3_600_000, undefined, { signal: ctx.signal })
    return `${url}: ${1000 + Math.floor(ctx.random() * 9000)} bytes`
  },
})

// Read when a worker has room, never far ahead: it could just as well be a million lines of a file.
async function* pages() {
  const kinds = ['good', 'good', 'flaky', 'good', 'broken', 'endless'] as const
  for (const [i, kind] of [...kinds, ...kinds].entries()) {
    await sleep(10)
    yield fetchPage.task({ url: `https://example.org/${i + 1}`, kind }, { id: `page-${i + 1}` })
  }
}

const counts = { success: 0, failed: 0, timeout: 0, crashed: 0, cancelled: 0 }
for await (const response of Runners.streamTask(pages(), { timeoutMs: 2000, maxAttempts: 2, backoffMs: 50 })) {
  counts[response.status]++
  const end = response.success ? response.answer : `${response.error.code}, ${response.error.message}`
  console.log(`${response.id.padEnd(7)} ${response.status.padEnd(7)} attempts: ${response.attempts}  ${end}`)
}
console.log(`12 pages: ${counts.success} success, ${counts.failed} failed, ${counts.timeout} timed out`)

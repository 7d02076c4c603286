import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { zstdCompressSync } from 'node:zlib'
import { type EngineEvents, LocalRuntime, type Placement, Runners, type WorkerLink } from 'manyworlds'
import { chat } from '../agents.ts'

const CHATS = 20

/** Bytes of one conversation whose every step repeats all messages so far. */
export async function chats(): Promise<void> {
  console.log(
    '| turns | as JSON | as one zstd blob | stored | of the blob | on the link |\n|---:|---:|---:|---:|---:|---:|',
  )
  for (const turns of [50, 200]) {
    const empty = await measure(0)
    const { json, blob, stored, link } = await measure(turns)
    const [each, wire] = [(stored - empty.stored) / CHATS, (link - empty.link) / CHATS]
    console.log(`| ${[turns, json, blob, each, (each / blob).toFixed(2), wire].map(shown).join(' | ')} |`)
  }
}

const shown = (value: number | string) => (typeof value === 'string' ? value : Math.round(value).toLocaleString('en'))

async function measure(turns: number) {
  const folder = mkdtempSync(join(tmpdir(), 'manyworlds-bench-'))
  const store = join(folder, 'run.sqlite')
  CountingRuntime.bytes = 0
  const tasks = Array.from({ length: CHATS }, (_, seed) => chat.task({ turns, seed }))
  const responses = await Runners.runTask(tasks, { store, cls: CountingRuntime, workerNum: 1, keepWarmMs: 0 })
  const [first] = responses.values()
  const text = JSON.stringify(first!.trajectory)
  await Runners.shutdown()
  const stored = statSync(store).size
  rmSync(folder, { recursive: true })
  return { json: text.length, blob: zstdCompressSync(text).length, stored, link: CountingRuntime.bytes }
}

/** Counts what workers send. */
class CountingRuntime extends LocalRuntime {
  static bytes = 0

  override start(placement: Placement, events: EngineEvents, signal: AbortSignal): Promise<void> {
    const link = (real: WorkerLink) => {
      const { onFrame } = real
      real.onFrame = (listener) =>
        onFrame.call(real, (frame) => {
          CountingRuntime.bytes += frame.byteLength
          listener(frame)
        })
      events.link(real)
    }
    return super.start(placement, { ...events, link }, signal)
  }
}

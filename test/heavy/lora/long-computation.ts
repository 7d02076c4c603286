import { loraCore } from '../../../dist/train/lora/lora-core.js'
import { Sidecar } from '../../../dist/train/lora/sidecar.js'
import { longRows, tiny } from './tiny.ts'

/** Computes for a long time, in a sidecar whose process it names first. */
const start = async () => {
  const sidecar = await Sidecar.start()
  process.stdout.write(`${sidecar.pid}\n`)
  return sidecar
}
await loraCore(tiny, { start }).forward(longRows(20_000), 'current')

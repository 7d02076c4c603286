import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { newFolder } from '../cli/manyworlds.ts'

const MANYWORLDS = new URL('../../dist/index.js', import.meta.url).href

/** A script that runs a task inline and then fails by itself, while the inline worker is still there. */
export function userProject(): string {
  const file = join(newFolder(), 'script.mjs')
  writeFileSync(
    file,
    `import { Runners, defineAgent, inline } from '${MANYWORLDS}'
const reads = defineAgent({ name: 'reads', run: () => process.env.INLINE_SETTING })
const { answer } = await Runners.runTask(reads.task(), { engine: inline(), store: false, env: { INLINE_SETTING: 'set' } })
await Runners.shutdown()
console.log('during: ' + answer + ', after: ' + process.env.INLINE_SETTING)
await Runners.runTask(reads.task(), { engine: inline(), store: false })
setTimeout(() => { throw new Error('the driver’s own error') }, 10)
`,
  )
  return file
}

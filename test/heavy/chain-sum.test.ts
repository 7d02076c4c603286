import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, it, onTestFinished } from 'vitest'

const EXAMPLE = fileURLToPath(new URL('../../examples/chain-sum.ts', import.meta.url))
const KINDS = ['chain_sum', 'two digits and one', 'product'] as const

/** Up to half an hour: only on request. SLOW=1 npm run test:heavy */
it.skipIf(!process.env.SLOW)(
  'SmolLM2-135M learns to add: on operands it never saw, on sums of another size, and not at the cost of products',
  async () => {
    const store = mkdtempSync(join(tmpdir(), 'mw-sums-'))
    onTestFinished(() => rmSync(store, { recursive: true, force: true }))
    const child = spawn(process.execPath, [EXAMPLE], {
      ...{ stdio: ['ignore', 'pipe', 'inherit'], env: { ...process.env, MANYWORLDS_STORE: store } },
    })
    onTestFinished(() => void child.kill('SIGKILL'))
    let printed = ''
    child.stdout!.setEncoding('utf8').on('data', (text: string) => {
      printed += text
    })
    const code = await new Promise((resolve) => child.once('close', resolve))
    console.log(printed)
    expect(code).toBe(0)
    const [sums, small, products] = KINDS.map((kind) => figuresOf(printed, kind))
    expect(sums!.change).toBeGreaterThanOrEqual(0.05)
    expect(small!.change).toBeGreaterThanOrEqual(0.2)
    expect(products!.change).toBeGreaterThanOrEqual(-0.12)
    for (const { numbers } of [sums!, small!, products!]) expect(numbers).toBeGreaterThanOrEqual(98)
  },
  3_600_000,
)

/** Of a line such as `  chain_sum  0.229 → 0.417  +0.188 [+0.128, +0.248]  numbers 100.0 %`. */
function figuresOf(printed: string, kind: string): { change: number; numbers: number } {
  const line = printed.split('\n').find((one) => one.startsWith(`  ${kind} `)) ?? ''
  const [, sign, change, numbers] = /→ \S+ +([+−])(\S+) .*numbers (\S+) %/.exec(line) ?? []
  expect(change, printed).toBeDefined()
  return { change: (sign === '−' ? -1 : 1) * Number(change), numbers: Number(numbers) }
}

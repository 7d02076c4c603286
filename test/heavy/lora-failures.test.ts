import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, afterEach, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest'
import { keptBytecode } from '../../dist/python/bytecode.js'
import { gradientLearner } from '../../dist/train/gradient-learner.js'
import { runLearnerInThread } from '../../dist/train/learner-thread.js'
import { loraPython } from '../../dist/train/lora/environment.js'
import { loraCore } from '../../dist/train/lora/lora-core.js'
import type { LoraOptions } from '../../dist/train/lora/settings.js'
import { type Computing, Sidecar } from '../../dist/train/lora/sidecar.js'
import type { TokenRow } from '../../dist/train/row.js'
import { newFolder, programs } from '../cli/manyworlds.ts'
import { PYTHON_SET_UP_MS } from '../python/locked.ts'
import {
  closeSidecars,
  largestGap,
  longRows,
  someRows,
  TINY,
  takeSidecar,
  tiny,
  tinyCore,
  whyNoLora,
} from './lora/tiny.ts'

const why = await whyNoLora()
let python: string
let rows: readonly TokenRow[]
beforeAll(async () => {
  if (why !== undefined) return
  python = await loraPython(() => {})
  const core = tinyCore()
  rows = await someRows(core)
  await core[Symbol.asyncDispose]()
}, PYTHON_SET_UP_MS)
afterAll(closeSidecars)
afterEach(() => vi.unstubAllEnvs())

/** The same environment, run as a Python of the user's: by itself, or by a script. What Python compiled is used again. */
function usePython(command = python): void {
  vi.stubEnv('MANYWORLDS_LORA_PYTHON', command)
  vi.stubEnv('PYTHONPYCACHEPREFIX', keptBytecode(python).PYTHONPYCACHEPREFIX)
}

/** Those of this process, whichever of its threads started them. */
function sidecarPids(): readonly number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => {
      try {
        const parent = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]!.split(' ')[1]
        return parent === `${process.pid}` && readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('lora_sidecar.py')
      } catch {
        return false
      }
    })
    .map(Number)
}

const KILL_AFTER_MS = 500

describe.skipIf(why !== undefined)('a sidecar that is killed in the middle of an update', () => {
  it('fails the update with its signal; the learner goes on from its last version', async () => {
    const pids: (number | undefined)[] = []
    let kills = false
    const start = async (): Promise<Computing> => {
      const sidecar = await Sidecar.start()
      pids.push(sidecar.pid)
      return {
        call(op, ...rest) {
          if (op === 'forwardBackward' && kills) setTimeout(() => process.kill(sidecar.pid!, 'SIGKILL'), KILL_AFTER_MS)
          return sidecar.call(op, ...rest)
        },
        get ended() {
          return sidecar.ended
        },
        close: () => sidecar.close(),
      }
    }
    const algorithm = { loss: { name: 'clip', kl: 0.01 }, lr: 0.01 } as const
    const learner = gradientLearner(loraCore(tiny, { start }), algorithm)
    const same = gradientLearner(tinyCore(), algorithm)
    onTestFinished(async () => {
      for (const one of [learner, same]) await one[Symbol.asyncDispose]?.()
    })
    for (const one of [learner, same]) {
      await one.start({ seed: 1 })
      await one.update({ rows })
    }
    const before = await learner.publish()
    kills = true
    await expect(learner.update({ rows: longRows(20_000) })).rejects.toMatchObject({
      code: 'LEARNER_FAILED',
      message: expect.stringMatching(
        /^update 2 of policy 'lora' failed; version 1 was kept: the Python process of the LoRA learner was killed by SIGKILL during 'forwardBackward'/,
      ),
    })
    kills = false
    expect(learner.ended).toBe(true)
    expect(await learner.publish()).toEqual(before)
    expect(learner.ended).toBe(false)
    expect(pids).toHaveLength(2)
    expect(await learner.update({ rows })).toEqual(await same.update({ rows }))
    expect((await learner.publish()).ref).toEqual((await same.publish()).ref)
  })

  it('ends the thread of the learner, and another goes on from the last state', async () => {
    const module = new URL('./lora/learners.ts', import.meta.url)
    const known = new Set(sidecarPids())
    const learner = await runLearnerInThread({ module, export: 'learns' })
    onTestFinished(() => learner.terminate())
    await learner.start({ seed: 1 })
    await learner.update({ rows })
    const state = await learner.save()
    const [pid] = sidecarPids().filter((one) => !known.has(one))
    const update = learner.update({ rows: longRows(20_000) })
    setTimeout(() => process.kill(pid!, 'SIGKILL'), KILL_AFTER_MS)
    await expect(update).rejects.toMatchObject({
      code: 'LEARNER_FAILED',
      message: expect.stringContaining('was killed by SIGKILL'),
    })
    expect(learner.ended).toBe(true)
    const next = await runLearnerInThread({ module, export: 'learns' })
    onTestFinished(() => next.terminate())
    const { ref } = await next.start({ seed: 1, state })
    expect(ref.version).toBe(1)
    expect((await next.update({ rows })).samples).toBeGreaterThan(0)
  })
})

describe.skipIf(why !== undefined)('a sidecar whose driver is killed', () => {
  it('ends at once, in the middle of a computation', async () => {
    const script = fileURLToPath(new URL('./lora/long-computation.ts', import.meta.url))
    const driver = spawn(process.execPath, [script], { stdio: ['ignore', 'pipe', 'inherit'] })
    onTestFinished(() => void driver.kill('SIGKILL'))
    const [line] = (await once(driver.stdout, 'data')) as [Buffer]
    const pid = Number(line.toString())
    expect(existsSync(`/proc/${pid}`)).toBe(true)
    // It opens the model first, then computes.
    await new Promise((resolve) => setTimeout(resolve, 3000))
    driver.kill('SIGKILL')
    await vi.waitFor(() => expect(existsSync(`/proc/${pid}`)).toBe(false), { timeout: 15_000 })
  })
})

describe.skipIf(why !== undefined)('libraries that print', () => {
  it('do not disturb the answers', async () => {
    const folder = newFolder()
    // Printed by Python, by a C library and by a program that is started; each when PEFT is imported, after the first answer.
    writeFileSync(
      join(folder, 'sitecustomize.py'),
      `import sys, os, subprocess
class Loud:
    def find_spec(self, name, path=None, target=None):
        if name == "peft":
            print("loading", flush=True)
            os.write(1, b"\\x04\\x00\\x00\\x00null")
            subprocess.run(["sh", "-c", "cat; echo from a program"])
sys.meta_path.insert(0, Loud())
`,
    )
    usePython()
    vi.stubEnv('PYTHONPATH', folder)
    const core = loraCore(tiny)
    onTestFinished(() => core[Symbol.asyncDispose]())
    expect((await core.forward(rows, 'current')).logProbs).toHaveLength(rows.length)
  })
})

describe.skipIf(why !== undefined)('base models', () => {
  const gguf = () => {
    const folder = newFolder()
    const file = join(folder, 'tiny.gguf')
    const script = fileURLToPath(new URL('python/write_gguf.py', import.meta.url))
    const env = { ...process.env, ...keptBytecode(python) }
    execFileSync(python, [script, file, join(folder, 'same')], { env, stdio: ['ignore', 'ignore', 'pipe'] })
    return { file, same: join(folder, 'same') }
  }

  it('of a GGUF file are those that it was made of; it is converted once', async () => {
    const { file, same } = gguf()
    const cache = newFolder()
    // Environments stay where they are.
    usePython()
    vi.stubEnv('XDG_CACHE_HOME', cache)
    const core = loraCore({ ...tiny, base: { gguf: file } }, { start: takeSidecar })
    onTestFinished(() => core[Symbol.asyncDispose]())
    const { logProbs } = await core.forward(rows, 'current')
    const models = join(cache, 'manyworlds', 'models')
    const made = readdirSync(models)
    expect(made).toEqual([expect.stringMatching(/^gguf-[0-9a-f]{16}$/)])
    const from = async (base: LoraOptions['base']) => {
      const other = loraCore({ ...tiny, base }, { start: takeSidecar })
      onTestFinished(() => other[Symbol.asyncDispose]())
      return (await other.forward(rows, 'current')).logProbs
    }
    expect(largestGap(await from({ gguf: file }), logProbs)).toBe(0)
    for (const name of ['tokenizer.json', 'tokenizer_config.json'])
      copyFileSync(join(models, made[0]!, name), join(same, name))
    expect(largestGap(await from(same), logProbs)).toBeLessThan(1e-5)
  })

  it('a full disk is reported, and leaves nothing behind', async () => {
    const { file } = gguf()
    const cache = newFolder()
    mkdirSync(join(cache, 'manyworlds', 'models'), { recursive: true })
    // No file may have more than 100 KB; there is no disk here that could be filled.
    usePython(`${programs({ python: `ulimit -f 200; exec ${python} "$@"` })}/python`)
    vi.stubEnv('XDG_CACHE_HOME', cache)
    const core = loraCore({ ...tiny, base: { gguf: file } })
    onTestFinished(() => core[Symbol.asyncDispose]())
    await expect(core.weights()).rejects.toMatchObject({
      code: 'LEARNER_FAILED',
      message: expect.stringMatching(/File too large.*: free disk space, or set another folder with XDG_CACHE_HOME/),
    })
    expect(readdirSync(join(cache, 'manyworlds', 'models'))).toEqual([])
  })

  it.for([
    ['./nowhere', 'the folder ./nowhere does not exist'],
    ['some/model', 'give a folder, or allow downloads from the hub with `download: true`'],
    [{ gguf: '/nowhere.gguf' }, 'the GGUF file /nowhere.gguf does not exist'],
    [{ config: TINY, tokenizer: './nowhere' }, 'the folder ./nowhere does not exist'],
  ] as const)('%o: what is not there is named', async ([base, message]) => {
    const core = loraCore({ ...tiny, base }, { start: takeSidecar })
    onTestFinished(() => core[Symbol.asyncDispose]())
    await expect(core.weights()).rejects.toMatchObject({
      code: 'LEARNER_INVALID',
      message: expect.stringContaining(message),
    })
  })

  it('in bf16 have an adapter in float32', async () => {
    const core = loraCore({ ...tiny, dtype: 'bfloat16' }, { start: takeSidecar })
    onTestFinished(() => core[Symbol.asyncDispose]())
    const exact = tinyCore()
    onTestFinished(() => exact[Symbol.asyncDispose]())
    await core.forwardBackward(rows, { name: 'sft' })
    await core.optimStep({ lr: 1e-5 })
    const header = Buffer.from(await core.weights()).toString('latin1')
    expect(header).toContain('"dtype":"F32"')
    expect(header).not.toContain('"dtype":"BF16"')
    const [one, other] = [await core.forward(rows, 'reference'), await exact.forward(rows, 'reference')]
    for (const [at, logProbs] of one.logProbs.entries())
      for (const [i, logProb] of logProbs.entries())
        expect(Math.abs(logProb - other.logProbs[at]![i]!)).toBeLessThan(0.1)
  })
})

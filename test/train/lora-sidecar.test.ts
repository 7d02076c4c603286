import { execFileSync } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { loraCore } from '../../dist/train/lora/lora-core.js'
import { rowParts } from '../../dist/train/lora/row-parts.js'
import { checkedLora, type LoraOptions } from '../../dist/train/lora/settings.js'
import { Sidecar, type SidecarOptions } from '../../dist/train/lora/sidecar.js'
import { programs } from '../cli/manyworlds.ts'
import { someRows } from './some-rows.ts'

/** What a sidecar says that cannot start. The real one is in test/heavy. */
async function startWith(script: string, options: SidecarOptions = {}): Promise<Error> {
  vi.stubEnv('MANYWORLDS_LORA_PYTHON', `${programs({ python: script })}/python`)
  try {
    const sidecar = await Sidecar.start(options)
    await sidecar.close()
    throw new Error('it started')
  } catch (error) {
    return error as Error
  } finally {
    vi.unstubAllEnvs()
  }
}

describe('a sidecar that cannot start', () => {
  it('says which signal ended it, and what helps', async () => {
    const error = await startWith('echo "computing with AMX" >&2; kill -ILL $$')
    expect(error).toMatchObject({ code: 'LEARNER_FAILED' })
    expect(error.message).toContain("was killed by SIGILL during 'start'")
    expect(error.message).toContain("use `dtype: 'float32'`, or set ONEDNN_MAX_CPU_ISA=AVX2")
    expect(error.message).toContain('It printed:\ncomputing with AMX')
  })

  it('says what it printed, if that is no answer', async () => {
    const error = await startWith('echo "hello from a wrapper"; exec sleep 60')
    expect(error.message).toContain('its standard output is not a valid message: it starts with "hello from a wrapper')
  })

  it('says which package is missing in a Python of the user', async () => {
    const found = execFileSync('sh', ['-c', 'command -v python3'], { encoding: 'utf8' }).trim()
    const error = await startWith(`exec ${found} -S "$@"`)
    expect(error.message).toMatch(/exited with code 1 during 'start': a Python package is missing/)
    expect(error.message).toContain("No module named 'torch'")
  })

  it('says that the Python of the user does not exist', async () => {
    vi.stubEnv('MANYWORLDS_LORA_PYTHON', '/nowhere/python')
    await expect(Sidecar.start()).rejects.toMatchObject({ code: 'PYTHON_MISSING' })
    vi.unstubAllEnvs()
  })

  /** What Python does when it imports PyTorch. */
  async function startImporting(torch: string): Promise<Error> {
    const folder = mkdtempSync(join(tmpdir(), 'mw-torch-'))
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
    writeFileSync(join(folder, 'torch.py'), torch)
    return startWith(`PYTHONPATH=${folder} exec python3 "$@"`, { silentMs: 4000 })
  }

  it('may take long, as long as it sends heartbeats', async () => {
    const error = await startImporting('import time\ntime.sleep(6)\nraise ImportError("slept well")')
    expect(error.message).toMatch(/exited with code 1 during 'start'(?:.|\n)*slept well/)
  })

  it('is killed if it sends no heartbeat', async () => {
    const error = await startImporting('import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)')
    expect(error.message).toContain("was killed, because it sent no heartbeat for 4 s during 'start'")
  })

  it('ends with its caller', async () => {
    const began = join(mkdtempSync(join(tmpdir(), 'mw-sidecar-')), 'began')
    onTestFinished(() => rmSync(dirname(began), { recursive: true, force: true }))
    vi.stubEnv('MANYWORLDS_LORA_PYTHON', `${programs({ python: `touch ${began}; exec sleep 60` })}/python`)
    const enough = new AbortController()
    const killed = expect(Sidecar.start({ signal: enough.signal })).rejects.toThrow(
      'was killed, because its caller aborted',
    )
    await expect.poll(() => existsSync(began)).toBe(true)
    enough.abort()
    await killed
    vi.unstubAllEnvs()
  })
})

describe('options of a LoRA policy', () => {
  const base = 'some/model'
  it.for([
    [{}, '`base` must be a folder'],
    [{ base, rank: 0 }, '`rank` must be a whole number of at least 1, it is 0'],
    [{ base, alpha: -1 }, '`alpha` must be above 0, it is -1'],
    [{ base, dtype: 'int8' }, 'unknown dtype "int8"; use one of float32, bfloat16, float16'],
    [{ base, targets: [] }, "`targets` must be 'all-linear' or names of layers"],
    [{ base, optimizer: { betas: [1, 2] } }, '`betas` must be two numbers of at least 0 and below 1'],
    [{ base, optimizer: { lr: 1 } }, "unknown key 'lr' in `optimizer`"],
    [{ base, treads: 2 }, "did you mean 'threads'?"],
  ] as const)('%o is refused', ([options, message]) => {
    expect(() => loraCore(options as unknown as LoraOptions)).toThrow(message)
  })

  it('have defaults', () => {
    expect(checkedLora({ base })).toMatchObject({
      ...{ name: 'lora', lora: { rank: 16, alpha: 32, targets: 'all-linear' }, dtype: 'float32', threads: 1 },
      ...{ device: 'auto', packed: true, download: false, optimizer: { betas: [0.9, 0.99], weightDecay: 0 } },
    })
  })
})

describe('rows of a LoRA policy', () => {
  it('are tokens', () => {
    expect(() => rowParts(someRows(1), 'lora')).toThrow(
      "row 0 contains an action chosen from candidates; the LoRA policy 'lora' can only be trained on tokens",
    )
  })
})

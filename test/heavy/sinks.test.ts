import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest'
import { openSinks, type TrainingSink } from '../../dist/train/index.js'
import { mlflow } from '../../examples/training-sinks/mlflow.ts'
import { wandb } from '../../examples/training-sinks/wandb.ts'
import { startServerProcess } from '../models/server-process.ts'
import { MLFLOW, WANDB } from '../python/environments.ts'
import { PYTHON_SET_UP_MS, pythonOf, runPython, whyNoPython } from '../python/locked.ts'

const reasons = new Map<object, string | undefined>()
beforeAll(async () => {
  for (const environment of [MLFLOW, WANDB]) reasons.set(environment, await whyNoPython(environment))
}, PYTHON_SET_UP_MS)

/** It takes 10 s of CPU; the rest is for machines that are busy. */
const START_MS = 400_000
const AT = 1_790_000_000_123
const config = { lr: 0.05 }

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'manyworlds-sinks-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

async function startMlflow(): Promise<string> {
  const script = fileURLToPath(new URL('python/serve_mlflow.py', import.meta.url))
  const folder = newFolder()
  const server = await startServerProcess('MLflow', await pythonOf(MLFLOW), [script, folder], START_MS)
  onTestFinished(() => server.close())
  return server.url
}

/** A training that tells steps, and is closed. Its figures are those of the step, whenever they are told. */
async function told(sink: TrainingSink, steps: readonly number[], at = AT): Promise<void> {
  const lines: string[] = []
  const log = openSinks([sink], { trainingId: 't1', config }, (line) => void lines.push(line))
  for (const step of steps) log.scalars(step, { loss: 1 / (step + 3), 'eval/success': step / 7 }, at + step)
  await log.close()
  expect(lines).toEqual([])
}

describe('the sink for MLflow', () => {
  it('a training is a run with every figure, and goes on in the same run', async ({ skip }) => {
    const why = reasons.get(MLFLOW)
    if (why !== undefined) skip(why)
    const url = await startMlflow()
    await told(mlflow(url), [0, 1, 2])
    // The last step is told again, later.
    await told(mlflow(url), [2, 3], AT + 1000)
    const ask = async (path: string, body?: object) => {
      const init = body && {
        method: 'POST',
        body: JSON.stringify(body),
        headers: { 'content-type': 'application/json' },
      }
      return (await fetch(`${url}/api/2.0/mlflow/${path}`, init)).json() as Promise<never>
    }
    const { runs } = (await ask('runs/search', { experiment_ids: ['0'] })) as {
      runs: { info: { run_id: string; run_name: string; status: string } }[]
    }
    expect(runs.map(({ info }) => [info.run_name, info.status])).toEqual([['t1', 'FINISHED']])
    for (const [name, figure] of [
      ['loss', (step: number) => 1 / (step + 3)],
      ['eval/success', (step: number) => step / 7],
    ] as const) {
      const query = new URLSearchParams({ run_id: runs[0]!.info.run_id, metric_key: name })
      const { metrics } = (await ask(`metrics/get-history?${query}`)) as { metrics: Record<string, unknown>[] }
      expect(metrics).toEqual(
        [0, 1, 2, 3].map((step) =>
          expect.objectContaining({ step, value: figure(step), timestamp: AT + step + (step < 3 ? 0 : 1000) }),
        ),
      )
    }
  })

  it('a server that is not there is reported, and the training goes on', async () => {
    const lines: string[] = []
    const log = openSinks([mlflow('http://127.0.0.1:1')], { trainingId: 't1' }, (line) => void lines.push(line))
    log.scalars(0, { loss: 1 }, AT)
    await log.close()
    expect(lines).toEqual([
      expect.stringMatching(/\(mlflow\) failed and is disabled; the training continues: fetch failed/),
    ])
  })
})

describe('the sink for W&B', () => {
  it('a training is a run with its settings and every figure', async ({ skip }) => {
    const why = reasons.get(WANDB)
    if (why !== undefined) skip(why)
    const folder = newFolder()
    const python = await pythonOf(WANDB)
    // The sink's Python has the environment of this process.
    for (const [name, value] of Object.entries({ WANDB_MODE: 'offline', WANDB_DIR: folder, WANDB_SILENT: 'true' }))
      vi.stubEnv(name, value)
    onTestFinished(() => void vi.unstubAllEnvs())
    await told(wandb('desk', { python }), [0, 1, 2])
    const script = new URL('python/read_wandb.py', import.meta.url)
    const runs = await runPython(python, script, { input: folder, timeoutMs: START_MS })
    expect(runs).toEqual([
      {
        ...{ id: 't1', project: 'desk', config: expect.objectContaining(config) },
        steps: [0, 1, 2].map((step) =>
          expect.objectContaining({ _step: step, loss: 1 / (step + 3), 'eval/success': step / 7 }),
        ),
      },
    ])
  })

  it('a Python that is not there, or has no wandb, is reported, and the training goes on', async () => {
    for (const python of ['no-such-python', 'false']) {
      const lines: string[] = []
      const log = openSinks([wandb('desk', { python })], { trainingId: 't1' }, (line) => void lines.push(line))
      for (let step = 0; step < 3; step++) log.scalars(step, { loss: 1 }, AT)
      await log.close()
      expect(lines, python).toEqual([
        expect.stringMatching(/\(wandb\) failed and is disabled; the training continues: /),
      ])
    }
  })
})

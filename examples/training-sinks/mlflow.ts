import type { TrainingSink } from 'manyworlds/train'

interface Run {
  readonly info: { readonly run_id: string }
  /** The last value of each metric. */
  readonly data: { readonly metrics?: readonly { readonly key: string; readonly step: number }[] }
}

/** Each training is a run of the experiment; a training that goes on finds its run again, and tells no step twice. */
export function mlflow(url: string, experiment = '0'): TrainingSink {
  let run: string
  let written: ReadonlyMap<string, number>
  async function call(path: string, body: object) {
    const json = { 'content-type': 'application/json' }
    const response = await fetch(`${url}/api/2.0/mlflow/${path}`, {
      method: 'POST',
      headers: json,
      body: JSON.stringify(body),
    })
    if (!response.ok) throw new Error(`MLflow: ${path}: HTTP ${response.status}: ${await response.text()}`)
    return (await response.json()) as { run: Run; runs?: Run[] }
  }
  return {
    name: 'mlflow',
    async open({ trainingId }) {
      const tags = [{ key: 'training', value: trainingId }]
      const { runs } = await call('runs/search', {
        experiment_ids: [experiment],
        filter: `tags.training = '${trainingId}'`,
      })
      const started = { experiment_id: experiment, run_name: trainingId, start_time: Date.now(), tags }
      const { info, data } = runs?.[0] ?? (await call('runs/create', started)).run
      run = info.run_id
      written = new Map(data.metrics?.map(({ key, step }) => [key, step]))
    },
    async scalars(step, values, timestamp) {
      const fresh = Object.entries(values).filter(([key]) => step > (written.get(key) ?? -1))
      const metrics = fresh.map(([key, value]) => ({ key, value, step, timestamp }))
      await call('runs/log-batch', { run_id: run, metrics })
    },
    async close() {
      await call('runs/update', { run_id: run, status: 'FINISHED', end_time: Date.now() })
    },
  }
}

import { randomBytes } from 'node:crypto'
import { ManyworldsError } from '../../../errors.ts'
import { checkedLora, type LoraOptions } from '../settings.ts'
import { chatAnswer, textAnswer } from './answer.ts'
import { Engine } from './engine.ts'
import { listen, type Route } from './http.ts'
import { checkedRequest } from './request.ts'
import { BASE, Samples } from './sampling.ts'

export interface Sampler {
  /** For the settings of a model, such as `http://127.0.0.1:38941/v1`. */
  readonly baseURL: string
  readonly apiKey: string
  /** Whether, on this machine, a request gets the same bits regardless of what is sampled in the same batch. */
  readonly exact: boolean
  /** Of the sampling Python process. */
  readonly pid: number | undefined
  /** Serves a version under this name. `weights` come from a LoRA core; null: the base model. */
  load(name: string, weights: Uint8Array | null): Promise<void>
  /** Unloads a version. Its running requests fail. */
  unload(name: string): Promise<void>
  close(): Promise<void>
}

export interface SamplerOptions {
  /** Receives messages about slow steps and problems. */
  readonly notice?: (line: string) => void
}

/**
 * Samples from a small base model and its adapters in a separate Python process, behind an OpenAI-compatible server on
 * loopback. The same request gives the same answer, bit for bit, regardless of concurrent requests, unless `exact` is
 * false.
 */
export async function startSampler(options: LoraOptions, { notice = () => {} }: SamplerOptions = {}): Promise<Sampler> {
  const engine = await Engine.start(checkedLora(options), notice)
  if (!engine.info.exact)
    notice(
      'on this machine, batching changes the last bits of log-probabilities, so a resumed training may produce a different curve',
    )
  const samples = new Samples(engine)
  const apiKey = randomBytes(24).toString('hex')
  const server = await listen(apiKey, routesOf(engine, samples)).catch(async (error: unknown) => {
    await engine.close()
    throw error
  })
  return {
    baseURL: `http://127.0.0.1:${server.port}/v1`,
    apiKey,
    exact: engine.info.exact,
    get pid() {
      return engine.pid
    },
    load: async (name, weights) => {
      checkName(name)
      if (engine.has(name, weights)) return
      samples.fail(name, `the model ${name} was replaced`)
      await engine.load(name, weights)
    },
    unload: async (name) => {
      samples.fail(name, `the model ${name} was unloaded`)
      await engine.unload(name)
    },
    close: async () => {
      samples.failAll('the sampler was closed')
      await server.close()
      await engine.close()
    },
  }
}

function checkName(name: string): void {
  if (typeof name !== 'string' || name === '' || name === BASE)
    throw new ManyworldsError('POLICY_INVALID', `a model cannot be served as ${JSON.stringify(name)}; use another name`)
}

function routesOf(engine: Engine, samples: Samples): ReadonlyMap<string, Route> {
  const models = () => [BASE, ...engine.adapters.keys()]
  return new Map<string, Route>([
    [
      'POST /v1/chat/completions',
      async (body, signal) => {
        const asked = checkedRequest('chat', body)
        return chatAnswer(asked, await samples.ask(asked, signal))
      },
    ],
    [
      'POST /v1/completions',
      async (body, signal) => {
        const asked = checkedRequest('text', body)
        return textAnswer(asked, await samples.ask(asked, signal))
      },
    ],
    [
      'GET /v1/models',
      async () => ({ object: 'list', data: models().map((id) => ({ id, object: 'model', owned_by: 'manyworlds' })) }),
    ],
    ['GET /health', async () => ({ status: 'ok', exact: engine.info.exact, models: models() })],
  ])
}

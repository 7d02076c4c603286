import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { seeded } from '../../../dist/random.js'
import { type ServerProcess, startServerProcess } from '../../models/server-process.ts'
import { weightsIn } from './adapter.ts'
import { type ChatMessage, END_OF_TURN, logProbsAt, read, render, VOCABULARY } from './model.ts'

/** How it misbehaves. */
export interface LettersServerOptions {
  readonly port?: number
  /** Calls of tools come back as other tokens. */
  readonly drifts?: boolean
  /** Says that another model has answered. */
  readonly echoes?: string
  /** Says nothing of token ids. */
  readonly silent?: boolean
  readonly latencyMs?: number
}

/** A server of the model of letters that loads adapters as vLLM does, in a process of its own. Adapters are lost with it. */
export function startLettersServer(options: LettersServerOptions = {}): Promise<ServerProcess> {
  const args = [fileURLToPath(import.meta.url), JSON.stringify(options)]
  return startServerProcess('the server of letters', process.execPath, args, 60_000)
}

/** What it was asked to load and to unload, and what it still has. */
export async function journalOf(server: ServerProcess): Promise<{ loads: string[]; unloads: string[]; has: string[] }> {
  return (await (await fetch(`${server.url}/journal`)).json()) as never
}

const adapters = new Map<string, Float64Array>()
const journal = { loads: [] as string[], unloads: [] as string[] }
const MOST_TOKENS = 8

interface Asked {
  readonly model: string
  readonly messages: readonly ChatMessage[]
  readonly tools?: readonly { readonly function: { readonly name: string } }[]
  readonly temperature?: number
  readonly seed?: number
}

function complete(asked: Asked, { drifts, echoes, silent }: LettersServerOptions): object {
  const weights = adapters.get(asked.model)!
  const { temperature = 1, seed = 0, tools = [] } = asked
  const prompt = render(asked.messages, drifts)
  const random = seeded(seed)
  const ids = [...prompt]
  const logProbs: number[] = []
  while (ids.length - prompt.length < MOST_TOKENS && (ids.length === prompt.length || ids.at(-1) !== END_OF_TURN)) {
    const all = logProbsAt(weights, ids, ids.length, temperature || 1)
    const id = temperature === 0 ? all.indexOf(Math.max(...all)) : drawn(all, random())
    logProbs.push(all[id]!)
    ids.push(id)
  }
  const sampled = ids.slice(prompt.length)
  const { text, calls } = read(sampled)
  const [tool] = tools
  const call =
    calls && tool ? [{ id: `c${seed}`, type: 'function', function: { name: tool.function.name, arguments: '{}' } }] : []
  return {
    ...{ id: `l${seed}`, object: 'chat.completion', model: echoes ?? asked.model },
    ...(!silent && { prompt_token_ids: prompt }),
    choices: [
      {
        index: 0,
        message: { role: 'assistant', content: text, ...(call.length > 0 && { tool_calls: call }) },
        finish_reason: call.length > 0 ? 'tool_calls' : sampled.at(-1) === END_OF_TURN ? 'stop' : 'length',
        ...(!silent && {
          token_ids: sampled,
          logprobs: { content: logProbs.map((logprob, at) => ({ token: String(sampled[at]), logprob })) },
        }),
      },
    ],
    usage: { prompt_tokens: prompt.length, completion_tokens: sampled.length },
  }
}

function drawn(logProbs: Float64Array, random: number): number {
  let sum = 0
  for (const [id, logProb] of logProbs.entries()) {
    sum += Math.exp(logProb)
    if (random < sum) return id
  }
  return VOCABULARY - 1
}

async function bodyOf(request: IncomingMessage): Promise<Record<string, string>> {
  const parts: Buffer[] = []
  for await (const part of request) parts.push(part as Buffer)
  return JSON.parse(Buffer.concat(parts).toString() || '{}') as Record<string, string>
}

async function answer(request: IncomingMessage, response: ServerResponse, options: LettersServerOptions) {
  const say = (status: number, value: unknown) =>
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value))
  const refuse = (status: number, message: string) => say(status, { error: { message } })
  if (request.url === '/journal') return say(200, { ...journal, has: [...adapters.keys()] })
  if (request.url === '/v1/models') return say(200, { data: ['base', ...adapters.keys()].map((id) => ({ id })) })
  const body = await bodyOf(request)
  const { lora_name: name = '', lora_path: path = '' } = body
  switch (request.url) {
    case '/v1/load_lora_adapter':
      if (adapters.has(name)) return refuse(400, `The lora adapter '${name}' has already been loaded.`)
      adapters.set(name, weightsIn(readFileSync(join(path, 'adapter_model.safetensors'))))
      journal.loads.push(name)
      return say(200, `Success: LoRA adapter '${name}' added successfully.`)
    case '/v1/unload_lora_adapter':
      if (!adapters.delete(name)) return refuse(404, `The lora adapter '${name}' cannot be found.`)
      journal.unloads.push(name)
      return say(200, `Success: LoRA adapter '${name}' removed successfully.`)
    case '/v1/chat/completions':
      if (!adapters.has(body.model!)) return refuse(404, `The model '${body.model}' does not exist.`)
      if (options.latencyMs) await new Promise((resolve) => setTimeout(resolve, options.latencyMs))
      return say(200, complete(body as unknown as Asked, options))
    default:
      return refuse(404, 'no such path')
  }
}

if (import.meta.main) {
  const options = JSON.parse(process.argv[2] ?? '{}') as LettersServerOptions
  const server = createServer((request, response) => void answer(request, response, options))
  server.listen(options.port ?? 0, '127.0.0.1')
  await once(server, 'listening')
  console.log(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
  process.stdin.resume().once('close', () => process.exit())
}

import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect } from 'vitest'
import { type Background, inBackground } from '../cli/background.ts'
import { storeFolder } from '../store/store-folder.ts'

export const AGENTS = fileURLToPath(new URL('../agents/rollout-server.ts', import.meta.url))
const ANSWER_MS = 60_000
export const TOKEN = 'mw_token-of-a-test-1234'

export interface TestRow {
  readonly prompt_ids: readonly number[]
  readonly completion_ids: readonly number[]
  readonly logprobs: readonly number[]
  readonly env_mask: readonly number[]
}

export interface TestRollout {
  readonly trajectory: string
  readonly rollout: number
  readonly reward: number | null
  readonly success: boolean | null
  readonly parts: object | null
  readonly error: { readonly code: string; readonly message: string } | null
  readonly num_turns: number
  readonly rows: readonly TestRow[]
  readonly refused: string | null
}

export interface TestAnswer {
  readonly status: number
  readonly run: string
  readonly store: string
  readonly groups: readonly { readonly task: string; readonly rollouts: readonly TestRollout[] }[]
  readonly error?: { readonly code: string; readonly message: string }
}

export interface TestServer extends Background {
  readonly url: string
  readonly store: string
  ask(body: unknown, options?: RequestInit): Promise<TestAnswer>
}

/** The command as its user starts it, for one test. */
export const startRolloutServer = (...words: string[]): Promise<TestServer> => serveFile(AGENTS, ...words)

/** The same with another file. */
export async function serveFile(file: string, ...words: string[]): Promise<TestServer> {
  const { store } = storeFolder()
  const tokenFile = join(store, 'token.txt')
  writeFileSync(tokenFile, TOKEN, { mode: 0o600 })
  const server = inBackground(
    ['rollout-server', file, '--port', '0', '--token-file', tokenFile, '--store', store, ...words],
    { cwd: store },
  )
  await expect.poll(server.output, { timeout: 30_000 }).toMatch(/ at https?:\/\/\S+;/)
  const [, url] = / at (https?:\/\/\S+);/.exec(server.output())!
  const ask = async (body: unknown, options: RequestInit = {}): Promise<TestAnswer> => {
    const response = await fetch(`${url}/v1/rollouts`, {
      method: 'POST',
      headers: { authorization: `Bearer ${TOKEN}` },
      body: typeof body === 'string' ? body : JSON.stringify(body),
      signal: AbortSignal.timeout(ANSWER_MS),
      ...options,
    })
    return { status: response.status, ...((await response.json()) as Omit<TestAnswer, 'status'>) }
  }
  return { ...server, url: url!, store, ask }
}

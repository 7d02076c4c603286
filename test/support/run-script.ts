import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, onTestFinished } from 'vitest'
import { signal } from './process-tree.ts'

/** Processes end within milliseconds of each other; on a busy machine, the last one may wait long for its turn. */
const GONE_WITHIN_MS = 30_000

export interface Ended {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

interface Options {
  /** For node itself, before the script. */
  readonly flags?: readonly string[]
  /** For the script. */
  readonly args?: readonly string[]
  readonly env?: Readonly<Record<string, string>>
  readonly cwd?: string
  readonly stdin?: string
}

/**
 * Starts a script of test/scripts (or a whole path) with `node`, as a user would, and waits for its end. Whatever it
 * started must be gone soon after; everything it starts inherits a mark in its environment. If the test fails or times out first,
 * the script and everything that it started are killed.
 */
export async function runScript(script: string | undefined, options: Options = {}): Promise<Ended> {
  const { flags = [], args = [], env = {}, cwd, stdin = '' } = options
  const mark = `MANYWORLDS_TEST_SCRIPT=${randomUUID()}`
  const path = script === undefined ? [] : [resolve(import.meta.dirname, '../scripts', script)]
  const child = spawn(process.execPath, [...flags, ...path, ...args], {
    env: { ...usersEnvironment(), ...env, MANYWORLDS_TEST_SCRIPT: mark.split('=')[1] },
    ...(cwd === undefined ? {} : { cwd }),
  })
  let isOver = false
  afterTest(() => {
    if (!isOver) for (const { pid } of marked(mark)) signal(pid, 'SIGKILL')
  })
  child.stdin.end(stdin)
  let stdout = ''
  let stderr = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text
  })
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text
  })
  const code = await new Promise<number | null>((done) => child.once('close', done))
  await nothingLeft(mark)
  isOver = true
  return { code, stdout, stderr }
}

/** What the script printed, one JSON value a line. */
export const printed = ({ stdout }: Ended): unknown[] =>
  stdout
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as unknown)

/** A mistake shows as one error with its code and these words, and nothing else; the script fails. */
export function expectOneError(ended: Ended, code: string, ...words: readonly string[]): void {
  expect(ended.stderr).toContain(code)
  for (const word of words) expect(ended.stderr).toContain(word)
  expect(ended.stderr.match(/^\S*Error\b.*:/gm), ended.stderr).toHaveLength(1)
  expect(ended.stderr).not.toMatch(/unhandled|warning/i)
  expect(ended.code).toBe(1)
}

/** Without what the test runner has put there, for which some things are different on purpose. */
export function usersEnvironment(): NodeJS.ProcessEnv {
  return Object.fromEntries(
    Object.entries(process.env).filter(([name]) => !/^(VITEST|VITE_|NODE_|TEST$|JEST_|FORCE_COLOR)/.test(name)),
  )
}

/** A script that is started by `beforeAll` belongs to no test. */
function afterTest(end: () => void): void {
  try {
    onTestFinished(end)
  } catch {
    // Nobody waits for it longer than the hook does.
  }
}

async function nothingLeft(mark: string): Promise<void> {
  if (process.platform !== 'linux') return
  let left = marked(mark)
  for (const until = Date.now() + GONE_WITHIN_MS; left.length > 0 && Date.now() < until; left = marked(mark))
    await sleep(50)
  expect(
    left.map(({ pid, command }) => `${pid} ${command}`),
    'processes that the script left behind',
  ).toEqual([])
}

function marked(mark: string): { pid: number; command: string }[] {
  return readdirSync('/proc').flatMap((pid) => {
    try {
      if (!/^\d+$/.test(pid) || !readFileSync(`/proc/${pid}/environ`, 'utf8').includes(mark)) return []
      const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ')
      // A process that has ended and waits for its parent to notice has no command line.
      return command === '' ? [] : [{ pid: Number(pid), command }]
    } catch {
      // It ended while we looked.
      return []
    }
  })
}

import { spawn } from 'node:child_process'
import type { PythonEnvSpec } from '../../python/environment.ts'
import { stderrTail } from '../../stderr-tail.ts'
import { bridgeEnvironment, RAY_VERSION } from './environment.ts'
import { connectError, namesToken, SAID_BEFORE_THROWN, wantsToken } from './error-advice.ts'
import { refuseUnreachable } from './reachable.ts'
import { needsFor, SAME_MINOR_PYTHON, type Versions, versionMismatch } from './versions.ts'

const ASK_MS = 60_000
const STDERR_CHARS = 8000
const CONNECT = 'import sys, ray; ray.init(address=sys.argv[1], log_to_driver=False, logging_level="ERROR")'

/** Finds out a cluster's versions. Connects with the pinned versions: if the cluster has others, Ray's error names them. */
export async function askCluster(
  address: string,
  tokenFile: string | undefined,
  make: (needs: PythonEnvSpec) => Promise<string>,
): Promise<Pick<Versions, 'ray'> | Versions> {
  await refuseUnreachable(address)
  const python = await make(needsFor({ ray: RAY_VERSION }))
  const access = tokenFile === undefined ? {} : { tokenFile }
  const env = { ...SAME_MINOR_PYTHON, ...bridgeEnvironment(python, access) }
  let { code, words } = await connect(python, address, env)
  if (wantsToken(words) && !namesToken(access))
    ({ code, words } = await connect(python, address, { ...env, RAY_AUTH_MODE: 'token' }))
  if (code === 0) return { ray: RAY_VERSION }
  const there = versionMismatch(words)?.there
  if (there === undefined) throw await connectError(`cannot ask the Ray cluster at ${address}`, words, address)
  return there
}

function connect(python: string, address: string, env: NodeJS.ProcessEnv) {
  const child = spawn(python, ['-c', CONNECT, address], { env, stdio: ['ignore', 'ignore', 'pipe'], timeout: ASK_MS })
  const stderr = stderrTail(child.stderr, {
    chars: STDERR_CHARS,
    heard: (tail) => {
      if (SAID_BEFORE_THROWN.test(tail)) child.kill('SIGKILL')
    },
  })
  return new Promise<{ code: number | null; words: string }>((resolve) => {
    child.once('error', (error) => resolve({ code: 1, words: error.message }))
    child.once('close', (code) => resolve({ code, words: stderr() }))
  })
}

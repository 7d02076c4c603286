import { spawn } from 'node:child_process'
import { connectError, namesToken, SAID_BEFORE_THROWN, wantsToken } from '../../engines/ray/cures.ts'
import { bridgeEnvironment, RAY_VERSION } from '../../engines/ray/environment.ts'
import { refuseUnreachable } from '../../engines/ray/reachable.ts'
import { needsFor, SAME_MINOR_PYTHON, type Versions, versionMismatch } from '../../engines/ray/versions.ts'
import type { Needs } from '../../python/environment.ts'

const ASK_MS = 60_000
const CONNECT = 'import sys, ray; ray.init(address=sys.argv[1], log_to_driver=False, logging_level="ERROR")'

/** The versions that a cluster has. It is asked with the pinned ones: where they are others, Ray says which. */
export async function askCluster(
  address: string,
  tokenFile: string | undefined,
  make: (needs: Needs) => Promise<string>,
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
  let words = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    words = (words + text).slice(-8000)
    if (SAID_BEFORE_THROWN.test(words)) child.kill('SIGKILL')
  })
  return new Promise<{ code: number | null; words: string }>((resolve) => {
    child.once('error', (error) => resolve({ code: 1, words: error.message }))
    child.once('close', (code) => resolve({ code, words }))
  })
}

import { randomUUID } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'

/** On a busy machine a process may take seconds to notice that its driver has gone, and to end. */
const GONE_WITHIN_MS = 30_000
/** Workers of this machine, workers that a node runs, nodes; the slots of Spark, and Spark itself; what serves Python worlds; models. */
const WORKER =
  /\/dist\/worker\/boot\.js|\/manyworlds\.bundle\.mjs|\/dist\/cli\/main\.js (?:node|rollout-server) |manyworlds-slot $|\/spark_host\.py|\/world_server-[0-9a-f]+\.py|\/counting_env\.py|\/smollm_server\.py|\/scripted-server\.ts|org\.apache\.spark\.deploy\./
/** In the environment of everything that this test run starts: other runs on this machine are not our business. */
const MARKER = 'MANYWORLDS_TEST_RUN'

/** Processes of this test run that are alive and should not be. */
function workers(run: string): Map<number, string> {
  const found = new Map<number, string>()
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue
    try {
      const command = readFileSync(`/proc/${name}/cmdline`, 'utf8').replaceAll('\0', ' ')
      if (!WORKER.test(command)) continue
      if (readFileSync(`/proc/${name}/environ`, 'utf8').includes(`${MARKER}=${run}`)) found.set(Number(name), command)
    } catch {
      // It ended while we looked.
    }
  }
  return found
}

/** Fails the whole run if a test, failed or not, has left a worker behind. */
export default function setup(): () => Promise<void> {
  if (process.platform !== 'linux') return async () => {}
  const run = randomUUID()
  process.env[MARKER] = run
  return async () => {
    let left = workers(run)
    for (const until = Date.now() + GONE_WITHIN_MS; left.size > 0 && Date.now() < until; left = workers(run))
      await sleep(100)
    for (const pid of left.keys()) process.kill(pid, 'SIGKILL')
    if (left.size > 0)
      throw new Error(`workers were left behind by the tests:\n${[...left].map((entry) => entry.join(' ')).join('\n')}`)
  }
}

import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseRemote, type Remote } from '../../src/engines/spark/connect/remote.ts'
import { startLocalSpark } from '../../src/engines/spark/local-spark.ts'
import { pids } from '../support/process-tree.ts'

export interface ConnectServer {
  /** Where it is, with its token. */
  readonly remote: Remote
  /** The same as text: `sc://host:port/;token=…`. */
  readonly address: string
  /** Ends it, and fails if a process of it is left. */
  stop(): Promise<void>
}

/** Processes that were killed take a moment to end. */
const GONE_WITHIN_MS = 30_000

/** Short streams, so that results come over several of them even where nothing breaks. A real server has two minutes. */
const CONF = {
  'spark.connect.execute.reattachable.senderMaxStreamDuration': '2s',
  'spark.connect.progress.reportInterval': '200ms',
  // As a server that is not inside another program has it. Without it, a file of one session is everybody's, and when that
  // session ends, tasks of others fail for want of it.
  'spark.sql.artifact.isolation.enabled': 'true',
}

/** A real Spark on three cores of this machine. */
export async function startConnectServer(): Promise<ConnectServer> {
  // Spark makes this folder where it is started, if it is not told where.
  const warehouse = mkdtempSync(join(tmpdir(), 'mw-warehouse-'))
  const conf = { ...CONF, 'spark.sql.warehouse.dir': warehouse }
  const spark = await startLocalSpark({ master: 'local[3]', conf }, (line) => void process.stderr.write(`${line}\n`))
  const remote = parseRemote(spark.remote)
  return {
    remote,
    address: spark.remote,
    stop: async () => {
      await spark.stop()
      rmSync(warehouse, { recursive: true, force: true })
      const isLeft = () => pids().filter((pid) => environmentOf(pid).includes(remote.token!))
      let left = isLeft()
      for (const until = Date.now() + GONE_WITHIN_MS; left.length > 0 && Date.now() < until; left = isLeft())
        await sleep(100)
      if (left.length > 0) throw new Error(`Spark has left processes behind: ${left.join(', ')}`)
    },
  }
}

function environmentOf(pid: number): string {
  if (pid === process.pid) return ''
  try {
    return readFileSync(`/proc/${pid}/environ`, 'utf8')
  } catch {
    return ''
  }
}

import { access, mkdtemp, rm, statfs } from 'node:fs/promises'
import { availableParallelism, totalmem } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { defaultStore } from '../../../store/run-path.ts'
import type { Check } from './check.ts'
import { whyNotHere } from './sqlite-here.ts'

const LOW_DISK_BYTES = 1e9
const HERE = { concerns: 'local', required: false } as const

/** Checks the machine: the folder of run files, disk space, memory and cores. */
export async function checkMachine(): Promise<Check[]> {
  const store = defaultStore()
  const folder = resolve(store === false ? '.' : store)
  return [
    ...(store === false ? [] : [await checkRunFolder(folder)]),
    await checkDisk(await nearestExisting(folder)),
    { ...HERE, name: 'cores', purpose: 'workers', status: 'ok', detail: `${availableParallelism()}` },
    { ...HERE, name: 'memory', purpose: 'workers', status: 'ok', detail: memory() },
  ]
}

/** Creates the folder and a SQLite file in it, because permissions alone do not prove that this works. Both are removed again. */
async function checkRunFolder(folder: string): Promise<Check> {
  const what = { ...HERE, name: 'run files', required: true, purpose: 'recording runs', path: folder } as const
  let trial: string | undefined
  try {
    trial = await mkdtemp(join(await nearestExisting(folder), '.manyworlds-doctor-'))
    const problem = await whyNotHere(trial)
    if (problem === undefined) return { ...what, status: 'ok', detail: 'writable' }
    return { ...what, status: 'broken', detail: problem, advice: ELSEWHERE }
  } catch (error) {
    return { ...what, status: 'broken', detail: `not writable: ${(error as Error).message}`, advice: ELSEWHERE }
  } finally {
    if (trial !== undefined) await rm(trial, { recursive: true, force: true })
  }
}

const ELSEWHERE =
  'set MANYWORLDS_STORE to a folder on a local disk that you may write to, or to "off" to keep no run files'

async function checkDisk(folder: string): Promise<Check> {
  const what = { ...HERE, name: 'disk', purpose: 'recording runs' } as const
  try {
    const { bavail, bsize } = await statfs(folder)
    const free = bavail * bsize
    const detail = `${gigabytes(free)} free`
    return free < LOW_DISK_BYTES
      ? { ...what, status: 'low', detail, advice: 'free some space: "manyworlds rm --older-than 30d" removes old runs' }
      : { ...what, status: 'ok', detail }
  } catch (error) {
    return { ...what, status: 'broken', detail: (error as Error).message }
  }
}

async function nearestExisting(folder: string): Promise<string> {
  for (let here = folder; ; here = dirname(here))
    try {
      await access(here)
      return here
    } catch {
      if (dirname(here) === here) return here
    }
}

function memory(): string {
  // In a container, its memory limit applies. Without a limit, Node reports 0 or a number larger than the memory.
  const limit = process.constrainedMemory()
  const total = limit > 0 && limit < totalmem() ? limit : totalmem()
  return `${gigabytes(total)}, ${gigabytes(Math.min(total, process.availableMemory()))} free`
}

const gigabytes = (bytes: number) => `${(bytes / 1e9).toFixed(1)} GB`

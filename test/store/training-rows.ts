import { hash } from 'node:crypto'
import { readdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { TrainingDb } from '../../src/store/trainings/training-db.ts'
import type { UpdateRow, VersionRow } from '../../src/store/trainings/training-rows.ts'

export const shaOf = (text: string | Uint8Array) => hash('sha256', text)

export const planRow = (number: number) => ({
  ...{ number, epoch: 0, version: number, run: `t.u${String(number).padStart(5, '0')}`, seed: 2 ** 47 + number },
  tasks: ['a', 'b'],
})

export const updateRow = (number: number, stateSha: string): UpdateRow => ({
  ...{ number, epoch: 0, versionIn: number, versionOut: number + 1, batchSha: shaOf(`batch ${number}`), stateSha },
  members: [
    ['a', 0, shaOf('a0')],
    ['b', 1, null],
  ],
  report: { successRate: 0.25 + number / 100, reward: 0.5, episodes: 2, metrics: { loss: -0.1, entropy: 1.2 } },
  ...{ collectMs: 50.5, trainMs: 10, curveSha: shaOf(`curve ${number}`) },
})

export const versionRow = (version: number, sha256: string, bytes: number): VersionRow => ({
  ...{ version, update: version === 0 ? null : version - 1, sha256, policy: 'desk', bytes, kept: true },
})

/** A whole update: its plan, its files and its commit. */
export async function oneUpdate(db: TrainingDb, number: number): Promise<{ state: string; weights: string }> {
  db.plan(planRow(number))
  const bytes = Buffer.from(`weights ${number + 1}`)
  const state = await db.writeFile(Buffer.from(`state ${number}`))
  const weights = await db.writeFile(bytes)
  const version = versionRow(number + 1, weights, bytes.length)
  db.update({ update: updateRow(number, state), version, sampler: { next: number + 1 } })
  return { state, weights }
}

/** The folder of a training's files, and the names of those. */
export const filesFolder = (path: string, id = 't') => join(dirname(path), 'store.trainings', id)
export const filesOf = (path: string, id = 't') => readdirSync(filesFolder(path, id)).toSorted()

import { existsSync, readFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { inspect } from 'node:util'
import { deserialize, serialize } from 'node:v8'
import { zstdDecompressSync } from 'node:zlib'
import { RunFile } from 'manyworlds/runs'
import { expect } from 'vitest'

/** A few characters of its middle, in each form that a secret may have; written out here, not asked of the code that is tested. */
const needles = (secret: string): Buffer[] => {
  const base64 = ['', 'x', 'xx'].map((before) =>
    Buffer.from(before + secret)
      .toString('base64')
      .slice(4, -4),
  )
  const texts = [secret, encodeURIComponent(secret), JSON.stringify(secret).slice(1, -1), ...base64]
  return texts.flatMap((text) => [Buffer.from(text), Buffer.from(text, 'utf16le'), Buffer.from(text, 'latin1')])
}

export function expectWithout(secrets: readonly string[], what: string | Uint8Array, where: string): void {
  const bytes = typeof what === 'string' ? Buffer.from(what) : Buffer.from(what)
  for (const secret of secrets)
    for (const needle of needles(secret))
      if (bytes.includes(needle)) {
        const at = bytes.indexOf(needle)
        expect.fail(`${where} has a secret in it: …${bytes.subarray(Math.max(0, at - 80), at + 40)}…`)
      }
}

/** Looks at every byte of a store: its files, and each value of each row, uncompressed. */
export async function expectStoreWithout(secrets: readonly string[], path: string, runId: string): Promise<void> {
  for (const file of [path, `${path}-wal`, `${path}-shm`])
    if (existsSync(file)) expectWithout(secrets, readFileSync(file), file)
  using db = new DatabaseSync(path, { readOnly: true })
  const tables = db.prepare("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')").all()
  let values = 0
  for (const { name } of tables)
    for (const row of db.prepare(`SELECT * FROM "${name}"`).all())
      for (const [column, value] of Object.entries(row)) {
        values++
        if (typeof value === 'string') expectWithout(secrets, value, `${name}.${column}`)
        if (!(value instanceof Uint8Array)) continue
        expectWithout(secrets, value, `${name}.${column}`)
        expectWithout(secrets, uncompressed(value), `${name}.${column}`)
      }
  expect(values).toBeGreaterThan(100)
  using run = RunFile.open(runId, { store: dirname(path) })
  for (const { response, input, info } of run.answered()) {
    const { trajectory } = response
    expectWithout(secrets, shown([response, trajectory, input, info, await response.toTrajectory()]), response.id)
  }
  for (const table of ['responses', 'steps', 'tasks'] as const)
    for (const row of run.rows()[table]({ subTasks: true })) expectWithout(secrets, shown(row), table)
}

const shown = (value: unknown) => inspect(value, { depth: 30, maxStringLength: null, breakLength: Infinity })

function uncompressed(bytes: Uint8Array): Uint8Array {
  try {
    const plain = zstdDecompressSync(bytes)
    return plain[0] === 0xff ? Buffer.concat([plain, serialize(deserialize(plain))]) : plain
  } catch {
    return bytes
  }
}

import { readFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { type Declared, exportsOf, typesIn } from './declarations.ts'

const repository = fileURLToPath(new URL('../..', import.meta.url))
const { exports } = JSON.parse(readFileSync(join(repository, 'package.json'), 'utf8')) as {
  exports: Record<string, { readonly types: string } | string>
}
const entries = Object.entries(exports).flatMap(([path, target]) =>
  typeof target === 'string' ? [] : [[`manyworlds${path.slice(1)}`, join(repository, target.types)] as const],
)
const keyOf = ({ file, name }: Declared) => `${file}#${name}`
const exported = new Map(entries.map(([name, file]) => [name, exportsOf(file)]))
const known = new Set([...exported.values()].flatMap((names) => [...names.values()]).map(keyOf))
/** Keys of properties, such as `[MARKER]`, which are no types. */
const isConstant = (name: string) => /^[A-Z][A-Z\d_]+$/.test(name)

describe.each(entries)('%s', (entry) => {
  it('has no type in a signature that cannot be imported', () => {
    const names = exported.get(entry)!
    expect(names.size).toBeGreaterThan(0)
    const missing = new Set<string>()
    for (const [name, declared] of names)
      for (const used of typesIn(declared))
        if (!known.has(keyOf(used)) && !isConstant(used.name))
          missing.add(`${used.name} of ${relative(repository, used.file)}, which ${name} names`)
    expect([...missing].toSorted()).toEqual([])
  })
})

it('finds types that are not exported', () => {
  // Nothing but this file of `dist`, which is no entry point: it names types that it does not export.
  const used = [...exportsOf(join(repository, 'dist/executor/dispatcher.d.ts')).values()].flatMap(typesIn)
  expect(used.filter((type) => !known.has(keyOf(type))).map(({ name }) => name)).toContain('FleetOptions')
})

it('has the types that people have asked for', () => {
  expect([...exported.get('manyworlds')!.keys()]).toEqual(
    expect.arrayContaining(['ExecutorConfig', 'WorkerName', 'ModelsConfig', 'LanguageModelTypes.CallOptions']),
  )
  expect([...exported.get('manyworlds/spark')!.keys()]).toContain('SparkError')
})

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { type Declared, exportsOf } from './declarations.ts'

const dist = fileURLToPath(new URL('../../dist', import.meta.url))

/** The comment above a declaration; undefined: there is none. */
function commentOf({ file, name }: Declared): string | undefined {
  const text = readFileSync(file, 'utf8')
  const declaration = `^(?:export )?(?:declare )?(?:abstract )?(?:class|function|const|interface|type) ${name}\\b`
  const above = text.slice(0, new RegExp(declaration, 'm').exec(text)!.index).trimEnd()
  return above.endsWith('*/') ? above.slice(above.lastIndexOf('/**')) : undefined
}

it.each(['index', 'engines/index', 'engines/spark/index'])('everything that %s exports says what it is', (entry) => {
  const names = [...exportsOf(join(dist, `${entry}.d.ts`))].filter(([name]) => !name.startsWith('LanguageModelTypes.'))
  expect(names.filter(([, declared]) => commentOf(declared) === undefined).map(([name]) => name)).toEqual([])
})

it('what a newcomer calls first comes with an example', () => {
  const names = exportsOf(join(dist, 'index.d.ts'))
  for (const name of [
    ...['defineAgent', 'Runners.runTask', 'Runners.streamTask', 'execTasks', 'Task', 'defineGrader', 'SharedBlob'],
    ...['ManyworldsError', 'TaskError', 'DistributedExecutor', 'ParallelizableAgent', 'SerialableAgent'],
  ])
    expect(commentOf(names.get(name)!), name).toContain('@example')
})

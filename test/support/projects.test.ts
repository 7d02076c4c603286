import { globSync } from 'node:fs'
import { expect, test } from 'vitest'
import { CLUSTER, ONLY_STORM, STORM, UNIT } from './projects.ts'

test('every file that a project lists exists, and is listed once', () => {
  const listed = [...UNIT, ...CLUSTER, ...ONLY_STORM]
  const files = new Set(globSync('test/**/*.test.ts', { cwd: new URL('../..', import.meta.url) }))
  expect([...listed, ...STORM].filter((file) => !files.has(file))).toEqual([])
  expect(listed.filter((file, at) => listed.indexOf(file) !== at)).toEqual([])
})

test('a unit test cannot start a process or a thread', async () => {
  const { spawn } = await import('node:child_process')
  const { Worker } = await import('node:worker_threads')
  expect(() => spawn('true')).toThrow('spawn in a unit test')
  expect(() => new Worker('1', { eval: true })).toThrow('new Worker in a unit test')
})

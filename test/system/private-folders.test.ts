import { chmodSync, chownSync, lstatSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { printed, runScript } from '../support/run-script.ts'

/** Other users of the machine can write to the folder for temporary files, and to some others. What workers run is not there. */

const isRoot = process.getuid?.() === 0
const uid = process.getuid!()
const SOMEBODY_ELSE = 65_534
const ANSWERS = [
  'printed once',
  [
    ['a', 'HELLO!'],
    ['b', { double: 4, isWorker: true }],
  ],
  { isWorker: false },
  'AGAIN!',
]

let root: string
let temporary: string
let cache: string
let compiled: string

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'mw-private-'))
  chmodSync(root, 0o755)
  ;[temporary, cache] = [join(root, 'tmp'), join(root, 'cache')]
  mkdirSync(temporary)
  chmodSync(temporary, 0o1777)
  compiled = join(cache, 'manyworlds', 'compiled')
})
afterEach(() => rmSync(root, { recursive: true, force: true }))

const run = (env: Readonly<Record<string, string>> = {}) =>
  runScript('one-file.ts', { env: { TMPDIR: temporary, XDG_CACHE_HOME: cache, ...env } })

const filesIn = (folder: string) => readdirSync(folder, { recursive: true })

test('compiled code is kept in a folder of this user alone, whatever others have put among the temporary files', async () => {
  const trap = join(temporary, `node-compile-cache-${uid}`)
  mkdirSync(trap)
  chmodSync(trap, 0o777)
  if (isRoot) chownSync(trap, SOMEBODY_ELSE, SOMEBODY_ELSE)
  const ended = await run()
  expect(printed(ended)).toEqual(ANSWERS)
  expect(ended.stderr).not.toContain('compiled code')
  expect(filesIn(temporary)).toEqual([`node-compile-cache-${uid}`])
  expect(filesIn(compiled)).not.toEqual([])
  for (const folder of [compiled, dirname(compiled), cache]) expect(lstatSync(folder).mode & 0o777).toBe(0o700)
})

describe('a cache folder that is not safe is not used, and that is said once', () => {
  const traps: [string, (target: string) => void, string][] = [
    ['others can write to it', () => chmodSync(compiled, 0o777), 'can be written by other users (mode 0777)'],
    [
      'others can write to the folder above',
      () => chmodSync(dirname(compiled), 0o777),
      'can be written by other users (mode 0777)',
    ],
    [
      'it is a symbolic link',
      (target) => {
        rmSync(compiled, { recursive: true })
        symlinkSync(target, compiled)
      },
      'is a symbolic link',
    ],
  ]
  if (isRoot)
    traps.push(
      ['it is somebody else’s', () => chownSync(compiled, SOMEBODY_ELSE, SOMEBODY_ELSE), 'belongs to another user'],
      [
        'the folder above is somebody else’s',
        () => chownSync(dirname(compiled), SOMEBODY_ELSE, SOMEBODY_ELSE),
        'belongs to another user (uid 65534)',
      ],
    )

  test.each(traps)('%s', async (_, set, why) => {
    const target = join(root, 'target')
    for (const folder of [compiled, target]) mkdirSync(folder, { recursive: true, mode: 0o700 })
    set(target)
    const ended = await run()
    expect(printed(ended)).toEqual(ANSWERS)
    const lines = ended.stderr.split('\n').filter((line) => line.includes('compiled code cannot be kept'))
    expect(lines).toEqual([expect.stringContaining(why)])
    expect([...filesIn(compiled), ...filesIn(target), ...filesIn(temporary)]).toEqual([])
  })

  test('there is no home directory that could be used', async () => {
    const ended = await run({ HOME: '/dev/null', XDG_CACHE_HOME: '' })
    expect(printed(ended)).toEqual(ANSWERS)
    expect(ended.stderr.match(/compiled code cannot be kept: E[A-Z]+/g)).toHaveLength(1)
    expect(filesIn(temporary)).toEqual([])
  })
})

test('a folder that others can only read becomes this user’s alone', async () => {
  mkdirSync(compiled, { recursive: true, mode: 0o755 })
  expect(printed(await run())).toEqual(ANSWERS)
  expect(lstatSync(compiled).mode & 0o777).toBe(0o700)
  expect(filesIn(compiled)).not.toEqual([])
})

import { type ChildProcess, spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { afterAll, describe, expect, test } from 'vitest'
import { endOwnedProcesses, OWNER_VARIABLE } from '../../dist/owned-processes.js'
import { printed, runScript } from '../support/run-script.ts'

const started: ChildProcess[] = []
afterAll(() => {
  for (const child of started) child.kill('SIGKILL')
})

/** The program has been executed when it prints: before that, a process has the environment of its parent. */
async function start(env: NodeJS.ProcessEnv): Promise<ChildProcess> {
  const child = spawn('sh', ['-c', 'echo; exec sleep 1000'], {
    detached: true,
    env: { PATH: process.env.PATH, ...env },
  })
  started.push(child)
  await once(child.stdout, 'data')
  return child
}

describe.skipIf(process.platform !== 'linux')('processes that tasks started in sessions of their own', () => {
  test('end by their owner; others do not', async () => {
    const [mine, other] = [`1-${randomUUID()}`, `1-${randomUUID()}`]
    const owned = [await start({ [OWNER_VARIABLE]: mine }), await start({ A: 'é\xff', [OWNER_VARIABLE]: mine })]
    const others = [
      await start({}),
      await start({ [OWNER_VARIABLE]: other }),
      await start({ [OWNER_VARIABLE]: `${mine}0` }),
      await start({ [OWNER_VARIABLE]: '' }),
      await start({ [`MY_${OWNER_VARIABLE}`]: mine, NOTE: `${OWNER_VARIABLE}=${mine}` }),
    ]
    const ends = Promise.all(owned.map((child) => once(child, 'exit')))
    endOwnedProcesses(new Set([mine]))
    expect((await ends).map(([, signal]) => signal)).toEqual(['SIGKILL', 'SIGKILL'])
    endOwnedProcesses(new Set())
    expect(others.map(({ exitCode, signalCode }) => exitCode ?? signalCode)).toEqual(others.map(() => null))
    for (const child of others) expect(process.kill(child.pid!, 0)).toBe(true)
  })

  // `runScript` fails if anything that it started is left.
  test.each(['the driver ends', 'the driver is killed', 'the worker dies'])('end when %s', async (how) => {
    const ended = await runScript('leaves-processes.ts', { args: [how] })
    const [answer, left] = printed(ended)
    if (how === 'the worker dies') expect([answer, left]).toEqual([null, []])
    else expect(answer, ended.stderr).toEqual([expect.any(Number), expect.any(Number)])
  })
})

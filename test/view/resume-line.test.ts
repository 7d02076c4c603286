import { expect, test } from 'vitest'
import { storedCommand } from '../../src/cli/script/resume-command.ts'
import { resumeLine } from '../../src/view/read/resume-line.ts'

test('the command that resumes a run has the options of its last session, in their places', () => {
  const first = { command: storedCommand(['run', 'a.ts', '--run-id', 'r']) }
  const words = ['run', 'my agents/a.ts', '--model=small=x', '--limit', '5', '--resume', 'r', '--', '--depth', '3']
  const line = resumeLine({ runId: 'r' }, [first, { command: storedCommand(words) }, { workerNum: 1 }, 'no JSON'])
  expect(line).toBe(`npx manyworlds run 'my agents/a.ts' --model=small=x --limit 5 --resume r -- --depth 3`)
  expect(resumeLine({ runId: 'r 1', script: '/home/me/a.ts' }, [{}])).toBe(`npx manyworlds run a.ts --resume 'r 1'`)
  expect(resumeLine({ runId: 'r' }, [null, { command: [1] }])).toBeUndefined()
})

test('no value that looks like a secret is stored', () => {
  const script = [
    '--api-key',
    'k1',
    '--api-key=k2',
    '--githubToken',
    'k6',
    '--dbPassword=k7',
    '--depth',
    '3',
    'postgres://me:k3@host/db',
    '--',
    'b',
  ]
  const words = storedCommand([
    'run',
    'a.ts',
    '--env',
    'TONE=k4',
    '--spark-remote',
    'sc://h/;token=k5',
    '--',
    ...script,
  ])
  expect(words.join(' ')).toBe(
    'run a.ts --env TONE --spark-remote sc://h/;token=... -- --api-key ... --api-key=... --githubToken ... --dbPassword=... --depth 3 ... -- b',
  )
})

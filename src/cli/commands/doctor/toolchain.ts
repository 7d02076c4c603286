import { isAtLeast } from '../../../is-at-least.ts'
import { ownPackage } from '../../../own-package.ts'
import type { Check, Found } from './check.ts'
import { checkPackages } from './packages.ts'
import { askNpm, askPython, askUv } from './programs.ts'

/** The oldest Python with which uv can be installed. The Python of an engine comes with its environment. */
const OLDEST_PYTHON = '3.8'
const PYTHON = { concerns: 'python', required: false, purpose: 'the environments of engines and worlds' } as const

/** Checks Node and the tools that make Python environments, all at the same time. */
export async function checkToolchain(): Promise<Check[]> {
  const [npm, python, uv] = await Promise.all([askNpm(), askPython(), askUv()])
  return [
    judge(
      { name: 'Node', concerns: 'local', required: true, purpose: 'everything', oldest: ownPackage.oldestNode },
      { version: process.versions.node, path: process.execPath },
      `install Node ${ownPackage.oldestNode} or newer: https://nodejs.org`,
    ),
    judge(
      { name: 'npm', concerns: 'local', required: false, purpose: 'installing packages' },
      npm,
      'npm installs packages and comes with Node: https://nodejs.org',
    ),
    judge(
      { ...PYTHON, name: 'Python', oldest: OLDEST_PYTHON },
      python,
      `needed only without uv; install Python ${OLDEST_PYTHON} or newer: https://www.python.org/downloads`,
    ),
    judge(
      { ...PYTHON, name: 'uv' },
      uv,
      'installed automatically if there is a Python; or install it: https://docs.astral.sh/uv/getting-started/installation',
    ),
    ...checkPackages(),
  ]
}

type Wanted = Pick<Check, 'name' | 'concerns' | 'required' | 'purpose'> & { readonly oldest?: string }

function judge({ oldest, ...what }: Wanted, found: Found | undefined, advice: string): Check {
  if (found === undefined) return { ...what, status: 'missing', advice }
  const { version, path, problem } = found
  const here = { ...what, ...(version == null ? {} : { version }), ...(path === undefined ? {} : { path }) }
  if (problem !== undefined) return { ...here, status: 'broken', detail: problem, advice }
  if (oldest !== undefined && !isAtLeast(version ?? '', oldest)) return { ...here, status: 'too old', advice }
  return { ...here, status: 'ok' }
}

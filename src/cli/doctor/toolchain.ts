import { ownPackage } from '../../own-package.ts'
import { isAtLeast } from '../version.ts'
import type { Check, Found } from './check.ts'
import { checkEnvironments } from './environments.ts'
import { checkJava } from './java.ts'
import { askNpm, askPython, askUv } from './programs.ts'

/** uv can be installed with it. The Python that Ray or Spark runs on comes with its environment. */
const OLDEST_PYTHON = '3.8'
const PYTHON = { concerns: 'python', required: false, purpose: 'the environments of Ray, Spark and worlds' } as const

/** Node, and what the Ray and Spark engines are set up with. The programs are asked at the same time. */
export async function checkToolchain(): Promise<Check[]> {
  const [npm, python, uv, java] = await Promise.all([askNpm(), askPython(), askUv(), checkJava()])
  return [
    judge(
      { name: 'Node', concerns: 'local', required: true, purpose: 'everything', oldest: ownPackage.oldestNode },
      { version: process.versions.node, path: process.execPath },
      `install Node ${ownPackage.oldestNode} or newer: https://nodejs.org`,
    ),
    judge(
      { name: 'npm', concerns: 'local', required: false, purpose: 'installing packages' },
      npm,
      'it installs packages, and comes with Node: https://nodejs.org',
    ),
    judge(
      { ...PYTHON, name: 'Python', oldest: OLDEST_PYTHON },
      python,
      `needed only where there is no uv; install Python ${OLDEST_PYTHON} or newer: https://www.python.org/downloads`,
    ),
    judge(
      { ...PYTHON, name: 'uv' },
      uv,
      'where there is Python, one is set up by itself; or install it: https://docs.astral.sh/uv/getting-started/installation',
    ),
    ...checkEnvironments(),
    java,
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

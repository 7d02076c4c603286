import { ownPackage } from '../../own-package.ts'
import { isAtLeast } from '../version.ts'
import type { Check, Found } from './check.ts'
import { findJava, findNpm, findPython, findSpark, findUv } from './programs.ts'
import { checkRay } from './ray.ts'

/** uv can be installed with it. The Python that Ray runs on comes with its environment. */
const OLDEST_PYTHON = '3.8'
const OLDEST_JAVA = '17'
const RAY = { concerns: 'ray', required: false } as const
const LATER = { concerns: 'later', required: false } as const
const VENV = 'python3 -m venv .venv && .venv/bin/pip install'

/** Node, what the Ray engine is set up with, and what an engine to come will want. The programs are asked at the same time. */
export async function checkToolchain(): Promise<Check[]> {
  const python = findPython()
  const [npm, uv, java, spark] = await Promise.all([findNpm(), findUv(), findJava(), python.then(findSpark)])
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
      { ...RAY, name: 'Python', purpose: 'Ray', oldest: OLDEST_PYTHON },
      await python,
      `needed only where there is no uv; install Python ${OLDEST_PYTHON} or newer: https://www.python.org/downloads`,
    ),
    judge(
      { ...RAY, name: 'uv', purpose: 'Ray' },
      uv,
      'where there is Python, one is set up with Ray; or install it: https://docs.astral.sh/uv/getting-started/installation',
    ),
    checkRay(),
    judge(
      { ...LATER, name: 'Java', purpose: 'Spark', oldest: OLDEST_JAVA },
      java,
      `install a JDK, ${OLDEST_JAVA} or newer: https://adoptium.net`,
    ),
    judge(
      { ...LATER, name: 'Spark', purpose: 'Spark' },
      spark,
      `${VENV} pyspark; or set SPARK_HOME to a Spark of yours`,
    ),
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

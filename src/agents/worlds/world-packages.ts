import { carriedFile } from '../../python/carried-file.ts'
import type { PythonEnvSpec } from '../../python/environment.ts'

/** The kinds of worlds that run in Python. */
export type WorldKind = 'gymnasium' | 'reasoning-gym'

const PYTHON = '3.11'

/** The packages of each kind. python/locks pins all their dependencies. */
const PACKAGES = {
  gymnasium: { title: 'Gymnasium', version: '1.4.0' },
  'reasoning-gym': { title: 'reasoning-gym', version: '0.1.25' },
} as const

export const WORLD_KINDS = Object.keys(PACKAGES) as readonly WorldKind[]

/** `more`: additional packages that some worlds need, as pip names them. */
export function worldEnvSpec(kind: WorldKind, more: readonly string[] = []): PythonEnvSpec {
  const { title, version } = PACKAGES[kind]
  return {
    title: [`${title} ${version}`, ...more].join(', '),
    folder: `${kind}-${version}`,
    packages: [`${kind}==${version}`],
    python: PYTHON,
    lock: carriedFile(`${kind}-${version}.txt`),
    more,
  }
}

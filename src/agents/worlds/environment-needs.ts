import { carriedFile } from '../../python/carried-file.ts'
import type { Needs } from '../../python/environment.ts'

/** The kinds of worlds that are written in Python. */
export type WorldKind = 'gymnasium' | 'reasoning-gym'

const PYTHON = '3.11'

/** What is installed for each, to the last package: python/locks. */
const PACKAGES = {
  gymnasium: { title: 'Gymnasium', version: '1.4.0' },
  'reasoning-gym': { title: 'reasoning-gym', version: '0.1.25' },
} as const

export const WORLD_KINDS = Object.keys(PACKAGES) as readonly WorldKind[]

/** `more`: packages that some worlds need besides, as pip names them. */
export function worldNeeds(kind: WorldKind, more: readonly string[] = []): Needs {
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

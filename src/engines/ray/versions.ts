import type { Needs } from '../../python/environment.ts'
import { needsOf } from './environment.ts'

/** Ray on Python, as a cluster has them: `2.60.0` on `3.11`. Whoever talks to it needs the same. */
export interface Versions {
  readonly ray: string
  readonly python: string
}

/** The cluster's versions, where they are what is wrong. */
export function clusterVersions(words: string): Versions | undefined {
  const [, ray, python] = /Version mismatch[\s\S]*?Ray: (\S+)[\s\S]*?Python: (\d+\.\d+)/.exec(words) ?? []
  return ray === undefined || python === undefined ? undefined : { ray, python }
}

/** The environment for such a cluster; without one, for a cluster of the pinned version. */
export function needsFor({ ray, python }: { readonly ray: string; readonly python?: string | undefined }): Needs {
  const needs = needsOf(ray)
  return python === undefined || python === needs.python
    ? needs
    : { ...needs, title: `${needs.title} on Python ${python}`, folder: `${needs.folder}-python${python}`, python }
}

/** Ray insists on the same patch release of Python, which no environment could promise. What is sent needs the minor one. */
export const SAME_MINOR_PYTHON = { RAY_DEFAULT_PYTHON_VERSION_MATCH_LEVEL: 'minor' } as const

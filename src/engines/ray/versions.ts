import type { Needs } from '../../python/environment.ts'
import { needsOf } from './environment.ts'

/** Ray on Python, as a cluster has them: `2.60.0` on `3.11`. Whoever talks to it needs the same. */
export interface Versions {
  readonly ray: string
  readonly python: string
}

/** Ray says both versions in a few lines. */
const MISMATCH_CHARS = 4000

/** The cluster's versions, where they are what is wrong. */
export function clusterVersions(words: string): Versions | undefined {
  const [theirs] = mismatched(words)
  const ray = theirs?.ray
  const python = theirs && /^\d+\.\d+/.exec(theirs.python)?.[0]
  return ray === undefined || python === undefined ? undefined : { ray, python }
}

/** Ray on Python as they stand after "Version mismatch": first the cluster's, then ours. Text is read once, from front to back. */
export function mismatched(words: string): Versions[] {
  const from = words.indexOf('Version mismatch')
  if (from < 0) return []
  const found: Versions[] = []
  let ray: string | undefined
  for (const [, what, version] of words.slice(from, from + MISMATCH_CHARS).matchAll(/(Ray|Python): (\d[\w.+]*)/g)) {
    if (what === 'Ray') ray = version
    else if (ray !== undefined) {
      found.push({ ray: ray.replace(/\.$/, ''), python: version!.replace(/\.$/, '') })
      ray = undefined
    }
  }
  return found
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

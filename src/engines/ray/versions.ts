import type { Needs } from '../../python/environment.ts'
import { needsOf } from './environment.ts'

/** Ray on Python, as a cluster has them: `2.60.0` on `3.11`. Whoever talks to it needs the same. */
export interface Versions {
  readonly ray: string
  readonly python: string
}

/** The cluster's versions and ours, where they are what is wrong. Ray names the cluster's first. */
export function versionMismatch(words: string): { readonly there: Versions; readonly here: Versions } | undefined {
  const at = words.indexOf('Version mismatch')
  if (at < 0) return undefined
  const told = words.slice(at)
  const [ray, ourRay] = found(/\bRay: ([\w.]{1,40})/g, told)
  const [python, ourPython] = found(/\bPython: (\d{1,3}\.\d{1,3})/g, told)
  if (!ray || !ourRay || !python || !ourPython) return undefined
  return { there: { ray, python }, here: { ray: ourRay, python: ourPython } }
}

const found = (pattern: RegExp, text: string): string[] => [...text.matchAll(pattern)].map(([, version]) => version!)

/** The environment for such a cluster; without one, for a cluster of the pinned version. */
export function needsFor({ ray, python }: { readonly ray: string; readonly python?: string | undefined }): Needs {
  const needs = needsOf(ray)
  if (python === undefined || python === needs.python) return needs
  const title = `${needs.title} on Python ${python}`
  return { ...needs, title, folder: `${needs.folder}-python${python}`, python, lock: undefined }
}

/** Ray insists on the same patch release of Python, which no environment could promise. What is sent needs the minor one. */
export const SAME_MINOR_PYTHON = { RAY_DEFAULT_PYTHON_VERSION_MATCH_LEVEL: 'minor' } as const

import type { PythonEnvSpec } from '../../python/environment.ts'
import { needsOf } from './environment.ts'

/** A cluster's versions of Ray and Python: `2.60.0` on `3.11`. A client needs the same. */
export interface Versions {
  readonly ray: string
  readonly python: string
}

/** The cluster's versions and ours, if Ray reports a mismatch. Ray names the cluster's first. */
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

/** The Python environment for a cluster with these versions. Default: the pinned version. */
export function needsFor({
  ray,
  python,
}: {
  readonly ray: string
  readonly python?: string | undefined
}): PythonEnvSpec {
  const needs = needsOf(ray)
  if (python === undefined || python === needs.python) return needs
  const title = `${needs.title} on Python ${python}`
  return { ...needs, title, folder: `${needs.folder}-python${python}`, python, lock: undefined }
}

/** Ray checks for the same patch release of Python, which no environment can guarantee; the minor version is enough. */
export const SAME_MINOR_PYTHON = { RAY_DEFAULT_PYTHON_VERSION_MATCH_LEVEL: 'minor' } as const

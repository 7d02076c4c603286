import type { WorldKind } from './environment-needs.ts'
import { MILLISECONDS, type Rule, TEXT, TEXTS } from './world-options.ts'

/** What worlds of every kind can be given. */
export interface PythonWorldOptions {
  /** What messages and recordings call it. Default: its `id`. */
  readonly name?: string
  /** Packages that it needs besides, as pip names them: `['gymnasium[box2d]', 'swig']`. They get an environment of their own. */
  readonly packages?: readonly string[]
  /** A Python that has all it needs, on every machine that runs workers; then nothing is set up. */
  readonly python?: string
  /** How long a reset or a step may take. Then its Python process is killed, and the episode fails. Default: a minute. */
  readonly stepTimeoutMs?: number
}

const STEP_TIMEOUT_MS = 60_000

export const PYTHON_RULES: Readonly<Record<keyof PythonWorldOptions | 'kind', Rule>> = {
  kind: TEXT,
  name: TEXT,
  packages: TEXTS,
  python: TEXT,
  stepTimeoutMs: MILLISECONDS,
}

export const placeOf = (kind: WorldKind, { packages = [], python }: PythonWorldOptions) => ({ kind, packages, python })

export const limitOf = ({ stepTimeoutMs = STEP_TIMEOUT_MS }: PythonWorldOptions): number => stepTimeoutMs

import { MILLISECONDS, type Rule, TEXT, TEXTS } from './world-options.ts'
import type { WorldKind } from './world-packages.ts'

/** Options of all kinds of Python worlds. */
export interface PythonWorldOptions {
  /** The name in messages and recordings. Default: the `id`. */
  readonly name?: string
  /** Additional packages, as pip names them: `['gymnasium[box2d]', 'swig']`. They are installed in a separate environment. */
  readonly packages?: readonly string[]
  /** A Python that has all packages, on every machine that runs workers. Nothing is installed then. */
  readonly python?: string
  /** How long a reset or a step may take. After that, the Python process is killed and the episode fails. Default: one minute. */
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

export const runtimeOf = (kind: WorldKind, { packages = [], python }: PythonWorldOptions) => ({
  kind,
  packages,
  python,
})

export const limitOf = ({ stepTimeoutMs = STEP_TIMEOUT_MS }: PythonWorldOptions): number => stepTimeoutMs

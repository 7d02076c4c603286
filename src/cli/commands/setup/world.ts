import { type WorldKind, worldEnvSpec } from '../../../agents/worlds/world-packages.ts'
import { type Made, makeAndAsk } from './make.ts'
import type { SetupArgs } from './spec.ts'

const NAMES = { gymnasium: 'Gymnasium', 'reasoning-gym': 'reasoning-gym' } as const

/** Makes the environment of worlds of this kind. */
export function setUpWorld(kind: WorldKind, { packages = '', force }: SetupArgs): Promise<Made> {
  const more = packages.split(',').filter((name) => name.trim() !== '')
  const module = kind.replace('-', '_')
  const program = `import ${module}, platform; from importlib.metadata import version; print("${NAMES[kind]}", version("${kind}"), "on Python", platform.python_version())`
  // The import may print warnings; the version is the last line.
  return makeAndAsk(worldEnvSpec(kind, more), force, ['-c', program], (output) => output.trim().split('\n').at(-1))
}

import { type WorldKind, worldNeeds } from '../../agents/worlds/environment-needs.ts'
import type { SetupArgs } from '../specs/setup.ts'
import { type Made, makeAndAsk } from './make.ts'

const NAMES = { gymnasium: 'Gymnasium', 'reasoning-gym': 'reasoning-gym' } as const

/** What worlds of this kind run in. */
export function setUpWorld(kind: WorldKind, { packages = '', force }: SetupArgs): Promise<Made> {
  const more = packages.split(',').filter((name) => name.trim() !== '')
  const module = kind.replace('-', '_')
  const program = `import ${module}, platform; from importlib.metadata import version; print("${NAMES[kind]}", version("${kind}"), "on Python", platform.python_version())`
  // An import that prints warnings says its version last.
  return makeAndAsk(worldNeeds(kind, more), force, ['-c', program], (output) => output.trim().split('\n').at(-1))
}

import type { EngineDoctor } from '../cli-parts.ts'

/** What `manyworlds doctor` looks at for this engine. */
export const rayDoctor: EngineDoctor = {
  about: 'The Ray engine needs uv or Python, and sets up the rest at its first use.',
  sections: { ray: 'For the Ray engine: set up by itself at first use' },
  async check() {
    const [{ RAY_VERSION, needsOf }, { checkEnvironment }] = await Promise.all([
      import('./environment.ts'),
      import('../../cli/commands/doctor/environment.ts'),
    ])
    return [
      checkEnvironment(
        { name: 'Ray', concerns: 'ray', purpose: 'the Ray engine', version: RAY_VERSION },
        needsOf(RAY_VERSION),
        '"manyworlds setup ray" sets it up, or the first run on Ray does',
      ),
    ]
  },
}

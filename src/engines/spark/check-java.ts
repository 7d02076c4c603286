import type { Check } from '../../cli/commands/doctor/check.ts'
import { askJava } from '../../cli/commands/doctor/programs.ts'
import { findJava } from './java.ts'

const JAVA = { name: 'Java', concerns: 'spark', required: false, purpose: 'a Spark that is started here' } as const

/** Whether the Spark engine would take the Java that is here: it judges itself, and says what to install. */
export async function checkJava(): Promise<Check> {
  // Asked beforehand: the engine would wait for one that hangs.
  const asked = await askJava()
  const { path, problem, version } = asked ?? {}
  const here = { ...JAVA, ...(path === undefined ? {} : { path }), ...(version === undefined ? {} : { version }) }
  try {
    if (problem === undefined) return { ...here, ...findJava(), status: 'ok' }
    return { ...here, status: 'broken', detail: problem, advice: 'set JAVA_HOME to a Java that works' }
  } catch (error) {
    return { ...here, status: asked === undefined ? 'missing' : 'too old', advice: (error as Error).message }
  }
}

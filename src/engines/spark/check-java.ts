import type { Check } from '../../cli/commands/doctor/check.ts'
import { askJava } from '../../cli/commands/doctor/programs.ts'
import { findJava } from './java.ts'

const JAVA = { name: 'Java', concerns: 'spark', required: false, purpose: 'a Spark that is started here' } as const

/** Whether the Spark engine accepts this machine's Java. Uses the engine's own check, whose error says what to install. */
export async function checkJava(): Promise<Check> {
  // Ask with a time limit first: the engine's check waits 30 s for a Java that hangs.
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

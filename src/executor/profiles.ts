import type { Profile } from '../protocol/messages.ts'
import type { AgentState } from './agents.ts'
import type { Run } from './run.ts'

/** Settings that many tasks share, stored once under a number. */
export class Profiles {
  readonly #byKey = new Map<number, Profile>()
  #next = 1

  of(run: Run, agent: AgentState, timeoutMs: number | undefined, announce: boolean): number {
    // Most tasks of a run have the same profile as the previous one.
    const last = run.lastProfile
    if (last && last.agent === agent.key && last.timeoutMs === timeoutMs && last.announce === announce) return last.key
    const content = `${agent.key} ${timeoutMs} ${announce}`
    let key = run.profiles.get(content)
    if (key === undefined) {
      key = this.#next++
      const { runId, seed, recorded } = run.options
      this.#byKey.set(key, { agent: agent.key, runId, seed, timeoutMs, announce, recorded })
      run.profiles.set(content, key)
      run.agents.add(agent)
    }
    run.lastProfile = { key, agent: agent.key, timeoutMs, announce }
    return key
  }

  get(key: number): Profile {
    return this.#byKey.get(key)!
  }

  /** The run is over. Returns the numbers that are now free. */
  forget(run: Run): number[] {
    const keys = [...run.profiles.values()]
    for (const key of keys) this.#byKey.delete(key)
    return keys
  }
}

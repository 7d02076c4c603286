/** What an engine posts for the other engines of the same Spark application. */
export interface Member {
  readonly id: string
  /** The driver's name in messages. */
  readonly name: string
  /** When it started, by its own clock: older drivers have precedence. */
  readonly since: number
  /** Cores that it has or is about to take. */
  readonly held: number
  /** Cores that it has work for. */
  readonly wanted: number
  /** Cores that it wants to leave free. */
  readonly reserve: number
}

/** How many of these cores slots may use. */
export const coresForSlots = (cores: number, members: readonly Member[]): number =>
  Math.max(1, cores - Math.max(0, ...members.map(({ reserve }) => reserve)))

/**
 * Divides cores: each driver gets the same number unless it wants less. The remainder goes to the oldest. All drivers compute
 * the same shares, whose sum never exceeds the cores.
 */
export function fairShares(cores: number, members: readonly Member[]): Map<string, number> {
  const oldestFirst = [...members].sort((a, b) => a.since - b.since || (a.id < b.id ? -1 : 1))
  const shares = new Map(oldestFirst.map(({ id }) => [id, 0]))
  let left = cores
  let hungry = oldestFirst.filter(({ wanted }) => wanted > 0)
  while (left > 0 && hungry.length > 0) {
    const each = Math.max(1, Math.floor(left / hungry.length))
    for (const { id, wanted } of hungry) {
      const more = Math.min(each, left, wanted - shares.get(id)!)
      shares.set(id, shares.get(id)! + more)
      left -= more
    }
    hungry = hungry.filter(({ id, wanted }) => shares.get(id)! < wanted)
  }
  return shares
}

/** Drivers that have less than their share. */
export function shortOf(cores: number, members: readonly Member[]): Member[] {
  const shares = fairShares(cores, members)
  return members.filter(({ id, held }) => held < shares.get(id)!)
}

/**
 * How many cores a driver may have from now on. It takes neither more than its share nor cores that others still hold; it keeps
 * cores above its share as long as no other driver is short of cores.
 */
export function allowance(me: Member, others: readonly Member[], cores: number): number {
  const all = [me, ...others]
  const share = fairShares(cores, all).get(me.id)!
  const free = cores - all.reduce((sum, { held }) => sum + held, 0)
  if (me.held > share) return free < 0 || shortOf(cores, all).length > 0 ? share : me.held
  return Math.min(share, me.held + Math.max(0, free))
}

import { engineParts } from '../../../engines/all-parts.ts'
import { installCommand, missingPeers, type PeerGroup } from '../../../optional-peers.ts'
import type { Check } from './check.ts'

/** Checks the npm packages that only some engines need. They are optional, and users install them. */
export function checkPackages(): Check[] {
  const users = new Map<PeerGroup, string[]>()
  for (const { name, packages = [] } of engineParts)
    for (const group of packages) users.set(group, [...(users.get(group) ?? []), name])
  return [...users].map(([group, engines]) => check(group, `--engine ${engines.join(', ')}`))
}

function check({ name, packages }: PeerGroup, purpose: string): Check {
  const what = { name, concerns: 'packages', required: false, purpose } as const
  const missing = missingPeers(packages)
  return missing.length === 0
    ? { ...what, status: 'ok', detail: 'installed' }
    : { ...what, status: 'missing', advice: `for ${purpose}: ${installCommand(missing)}` }
}

import type { EngineSetup } from '../../../engines/cli-parts.ts'
import { flagOf } from '../../frame/command.ts'
import { UsageError } from '../../frame/usage-error.ts'
import { setups } from './engine-setups.ts'
import type { SetupArgs } from './spec.ts'

const takers = (key: EngineSetup['takes'][number]) =>
  [...setups].filter(([, { takes }]) => takes.includes(key)).map(([name]) => name)

/** Options that apply only to some environments, and to which. */
const OF: Partial<Record<keyof SetupArgs, readonly string[]>> = {
  version: takers('version'),
  address: takers('address'),
  tokenFile: takers('tokenFile'),
  packages: ['gymnasium', 'reasoning-gym'],
  torch: ['lora'],
}

export function refuseForeign(args: SetupArgs): void {
  for (const [key, owners] of Object.entries(OF) as [keyof SetupArgs, readonly string[]][])
    if (args[key] !== undefined && !owners.includes(args.what))
      throw new UsageError(
        `${flagOf(key)} is for ${owners.map((owner) => `"setup ${owner}"`).join(' and ')}${instead(args.what, key)}`,
      )
}

function instead(what: string, key: string): string {
  const text = setups.get(what)?.instead
  return text === undefined || key === 'packages' || key === 'torch' ? '' : `: ${text}`
}

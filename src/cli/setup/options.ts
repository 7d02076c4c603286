import { flagOf } from '../command.ts'
import type { SetupArgs } from '../specs/setup.ts'
import { UsageError } from '../usage-error.ts'

/** The options that not all of them have, and whose they are. */
const OF = {
  version: ['ray', 'spark'],
  address: ['ray'],
  tokenFile: ['ray'],
  packages: ['gymnasium', 'reasoning-gym'],
  torch: ['lora'],
} as const satisfies Partial<Record<keyof SetupArgs, readonly SetupArgs['what'][]>>

export function refuseForeign(args: SetupArgs): void {
  for (const [key, owners] of Object.entries(OF) as [keyof typeof OF, readonly string[]][])
    if (args[key] !== undefined && !owners.includes(args.what))
      throw new UsageError(
        `${flagOf(key)} is for ${owners.map((owner) => `"setup ${owner}"`).join(' and ')}${instead(args.what, key)}`,
      )
}

const instead = (what: SetupArgs['what'], key: string) =>
  what === 'spark' && key !== 'packages' && key !== 'torch'
    ? ': for a Spark cluster, nothing needs to be set up here'
    : ''

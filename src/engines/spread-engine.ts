import { isDeepStrictEqual } from 'node:util'
import { ManyworldsError } from '../errors.ts'
import type { RunConfig } from '../run-config.ts'
import { engineParts } from './all-parts.ts'
import { engineKeys } from './choice.ts'

/**
 * Replaces `engine` by the older keys, which all other code reads. An invalid `engine` stays, so that the schema rejects it. If
 * a configuration has both, they must agree.
 */
export function spreadEngine(config: RunConfig): RunConfig {
  // Anything that is not a configuration is rejected later.
  if (typeof config !== 'object' || config === null || config.engine === undefined) return config
  const { engine, ...rest } = config
  const keys = engineKeys(engine)
  if (keys === undefined || !isKnown(keys)) return config
  for (const [key, value] of Object.entries(keys)) {
    const other = rest[key as keyof typeof rest]
    if (other !== undefined && !isDeepStrictEqual(other, value)) throw contradiction(key, other)
  }
  if (keys.cls !== undefined && rest.engineName !== undefined) throw contradiction('engineName', rest.engineName)
  if (keys.engineName !== undefined && rest.cls !== undefined) throw contradiction('cls', rest.cls)
  return { ...rest, ...keys }
}

const isKnown = ({ engineName }: RunConfig) =>
  engineName === undefined || engineParts.some(({ name }) => name === engineName)

/** Options may contain secrets, so only names and flags are shown. */
const contradiction = (key: string, value: unknown) =>
  new ManyworldsError(
    'CONFIG_INVALID',
    `run configuration: \`engine\` and \`${key}\`${typeof value === 'object' || typeof value === 'function' ? '' : ` (${String(value)})`} contradict each other; remove \`${key}\`, and give everything with \`engine\``,
  )

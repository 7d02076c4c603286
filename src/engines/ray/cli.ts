import type { Option } from '../../cli/frame/command.ts'
import type { RunConfig } from '../../run-config.ts'
import type { EngineCli, TypedAccess } from '../definition.ts'
import { rayDoctor } from './doctor-part.ts'
import { raySetup } from './setup-part.ts'

const options = {
  rayAddress: {
    type: 'text',
    value: 'ADDRESS',
    description: 'the Ray cluster: head:6379, ray://head:10001, or auto; asks for --engine ray',
    excludes: ['inLocal'],
  },
} as const satisfies Readonly<Record<string, Option>>

export const rayCli: EngineCli<typeof options> = {
  group: 'Ray',
  options,
  names: ['rayAddress'],
  configure: rayOf,
  examples: {
    run: [{ about: 'on a Ray cluster', line: 'manyworlds run agents.ts --ray-address head:6379' }],
    train: [
      {
        about: 'twenty epochs on a Ray cluster',
        line: 'manyworlds train clerk.ts --epochs 20 --ray-address head:6379',
      },
    ],
  },
  doctor: rayDoctor,
  setup: raySetup,
}

type Given = TypedAccess<typeof options>

/** The cluster of a run: typed options win over the script's. */
export function rayOf({ rayAddress, tokenFile }: Given, { engineName, ray }: RunConfig): Pick<RunConfig, 'ray'> {
  // A wrong value is reported where configurations are checked.
  if (engineName !== 'ray' || (ray !== undefined && (typeof ray !== 'object' || ray === null))) return {}
  const { token, ...others } = ray ?? {}
  const all = {
    ...others,
    ...(rayAddress === undefined ? {} : { address: rayAddress }),
    // Drop the script's token if a file was typed.
    ...(tokenFile !== undefined ? { tokenFile } : token === undefined ? {} : { token }),
  }
  return Object.keys(all).length === 0 ? {} : { ray: all }
}

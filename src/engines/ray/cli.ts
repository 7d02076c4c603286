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

/** The cluster of a run: what was typed over what the script gives. */
export function rayOf({ rayAddress, tokenFile }: Given, { engineName, ray }: RunConfig): Pick<RunConfig, 'ray'> {
  // What is wrong with it is said where configurations are checked.
  if (engineName !== 'ray' || (ray !== undefined && (typeof ray !== 'object' || ray === null))) return {}
  const { token, ...others } = ray ?? {}
  const all = {
    ...others,
    ...(rayAddress === undefined ? {} : { address: rayAddress }),
    // A token of the script would stand beside the file that was typed.
    ...(tokenFile !== undefined ? { tokenFile } : token === undefined ? {} : { token }),
  }
  return Object.keys(all).length === 0 ? {} : { ray: all }
}

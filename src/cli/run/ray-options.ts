import type { RunConfig } from '../../run-config.ts'
import type { RunArgs } from '../specs/run.ts'

type Given = Pick<RunArgs, 'rayAddress' | 'tokenFile'>

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

import type { Check } from '../../cli/commands/doctor/check.ts'
import { lookAt, type NodeLook, problemOf } from '../../cli/commands/nodes/look-at.ts'
import type { Access } from '../../cli/options/access.ts'
import type { Address } from '../../network/address.ts'
import type { DialError } from '../../network/dial.ts'
import { Refusal } from '../../network/handshake.ts'
import { ownPackage } from '../../own-package.ts'

const NODE = { name: 'node', concerns: 'nodes', purpose: 'the nodes engine' } as const

/** Whether each of the nodes can be used from here. */
export const checkNodes = async (addresses: readonly Address[], access: Access): Promise<Check[]> =>
  (await lookAt(addresses, access)).map(judge)

function judge({ address, status, error }: NodeLook): Check {
  const what = { ...NODE, path: address }
  if (error) return { ...what, required: true, detail: problemOf(error), ...verdict(address, error) }
  const { version } = status.info
  // Workers run the driver's version, so a node with another version works too.
  if (version !== ownPackage.version)
    return {
      ...{ ...what, version, required: false, status: 'other version' },
      advice: `this is ${ownPackage.version}; install the same version on both`,
    }
  return { ...what, version, required: true, status: 'ok' }
}

/** The kind of the problem, and what to do about it if its text does not say so. */
function verdict(address: string, { nobodyThere, cause }: DialError): Pick<Check, 'status' | 'advice'> {
  if (nobodyThere)
    return {
      status: 'unreachable',
      advice: `start it there: manyworlds node --listen HOST:${address.split(':').at(-1)}`,
    }
  if (!(cause instanceof Refusal)) return { status: 'unreachable' }
  return cause.code === 'TOKEN'
    ? {
        status: 'refused',
        advice: 'name the file with the token of the node: --token-file FILE, or MANYWORLDS_TOKEN_FILE',
      }
    : { status: 'refused' }
}

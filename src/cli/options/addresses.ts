import { type Address, parseAddress, showAddress } from '../../network/address.ts'
import { wordList } from '../../text/word-list.ts'
import { UsageError } from '../frame/usage-error.ts'

export const NODES_VARIABLE = 'MANYWORLDS_NODES'

/** The nodes in MANYWORLDS_NODES. */
export const nodesOfEnvironment = (): string[] => wordList(process.env[NODES_VARIABLE] ?? '')

/** The typed nodes, or those of the environment, without duplicates. */
export function nodeAddresses(typed: readonly string[]): Address[] {
  const given = typed.flatMap(wordList)
  const [words, from] = given.length > 0 ? [given, ''] : [nodesOfEnvironment(), `${NODES_VARIABLE}: `]
  const addresses = words.map((word) => {
    const address = parseAddress(word)
    if (typeof address === 'string') throw new UsageError(`${from}${address}`)
    return address
  })
  return [...new Map(addresses.map((address) => [showAddress(address), address])).values()]
}

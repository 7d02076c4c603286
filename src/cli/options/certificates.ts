import { createSecureContext } from 'node:tls'
import { ManyworldsError } from '../../errors.ts'
import type { ClientTls } from '../../network/dial.ts'
import type { ServerTls } from '../../network/gate.ts'
import { readPem } from '../../network/pem.ts'
import type { NodeArgs } from '../commands/node/spec.ts'

/** TLS of a server; undefined without a certificate. */
export function serverTls({
  tlsCert,
  tlsKey,
  clientCa,
}: Pick<NodeArgs, 'tlsCert' | 'tlsKey' | 'clientCa'>): ServerTls | undefined {
  const cert = readPem(tlsCert, '--tls-cert')
  const key = readPem(tlsKey, '--tls-key')
  if (cert === undefined || key === undefined) return undefined
  const ca = readPem(clientCa, '--client-ca')
  check({ cert, key, ca })
  return { cert, key, clientCa: ca }
}

/** TLS of a node that connects to a driver; undefined if no TLS option is given. */
export function clientTls({ tlsCa, tlsCert, tlsKey }: NodeArgs): ClientTls | undefined {
  if (tlsCa === undefined && tlsCert === undefined) return undefined
  const tls = {
    ca: readPem(tlsCa, '--tls-ca'),
    cert: readPem(tlsCert, '--tls-cert'),
    key: readPem(tlsKey, '--tls-key'),
  }
  check(tls)
  return tls
}

/** Checked before anything listens or connects, because later errors of OpenSSL do not name the file. */
function check({ ca, cert, key }: Record<'ca' | 'cert' | 'key', string | undefined>): void {
  const tries = [
    ['the certificate of the authority', { ca }],
    ['--tls-cert', { cert }],
    ['--tls-key', { key }],
    ['--tls-cert and --tls-key do not belong together:', { cert, key }],
  ] as const
  for (const [what, files] of tries)
    try {
      createSecureContext(files)
    } catch (cause) {
      const verdict = what.endsWith(':') ? what : `${what} is not a valid PEM file:`
      throw new ManyworldsError('CONFIG_INVALID', `${verdict} ${(cause as Error).message}`, { cause })
    }
}

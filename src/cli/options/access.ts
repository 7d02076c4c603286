import type { ClientTls } from '../../network/dial.ts'
import { readPem } from '../../network/pem.ts'
import { readToken } from '../../network/token.ts'

export const TOKEN_VARIABLE = 'MANYWORLDS_TOKEN_FILE'

/** Credentials for a node. */
export interface Access {
  readonly token: string | undefined
  readonly tls: ClientTls | undefined
}

interface AccessArgs {
  readonly tokenFile: string | undefined
  readonly tls?: boolean
  readonly tlsCa: string | undefined
  readonly tlsCert?: string | undefined
  readonly tlsKey?: string | undefined
  readonly serverName?: string | undefined
}

export const accessOf = (args: AccessArgs): Access => ({ token: tokenOf(args.tokenFile), tls: tlsOf(args) })

/** The token in the file that was named on the command line, or by the environment. */
export function tokenOf(file: string | undefined): string | undefined {
  if (file !== undefined) return readToken(file, '--token-file')
  const named = process.env[TOKEN_VARIABLE]
  return named ? readToken(named, TOKEN_VARIABLE) : undefined
}

/** Any option that only makes sense with TLS turns TLS on. */
function tlsOf({ tls = false, tlsCa, tlsCert, tlsKey, serverName }: AccessArgs): ClientTls | undefined {
  if (!tls && [tlsCa, tlsCert, serverName].every((given) => given === undefined)) return undefined
  return {
    ca: readPem(tlsCa, '--tls-ca'),
    cert: readPem(tlsCert, '--tls-cert'),
    key: readPem(tlsKey, '--tls-key'),
    serverName,
  }
}

import { readFileSync } from 'node:fs'
import { ManyworldsError } from '../errors.ts'

/** Certificates and keys as the user gives them: PEM text, or the path of a PEM file. */
export interface Pems {
  readonly ca?: string | undefined
  readonly cert?: string | undefined
  readonly key?: string | undefined
  readonly serverName?: string | undefined
}

/** `option`: what the user wrote, for the error. */
export function readPem(pem: string | undefined, option: string): string | undefined {
  if (pem === undefined || pem.includes('-----BEGIN')) return pem
  try {
    return readFileSync(pem, 'utf8')
  } catch (cause) {
    throw new ManyworldsError('CONFIG_INVALID', `${option} cannot be read: ${(cause as Error).message}`, { cause })
  }
}

/** The TLS options of an engine. Keys that are not given are left out. */
export function readPems(
  { ca, cert, key, serverName }: Pems,
  option: string,
): { readonly [Key in keyof Pems]?: string } {
  if ((cert === undefined) !== (key === undefined))
    throw new ManyworldsError('CONFIG_INVALID', `${option} needs \`cert\` and \`key\` together`)
  const read = {
    ca: readPem(ca, `${option}.ca`),
    cert: readPem(cert, `${option}.cert`),
    key: readPem(key, `${option}.key`),
    serverName,
  }
  return Object.fromEntries(Object.entries(read).filter(([, value]) => value !== undefined))
}

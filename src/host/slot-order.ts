/** What a slot is told. */
export interface SlotOrder {
  /** Where the driver may be; the first that answers is taken. */
  readonly hosts: readonly string[]
  readonly port: number
  readonly token: string
  /** Present: the driver speaks TLS. */
  readonly tls?: { readonly ca?: string; readonly serverName?: string }
}

/** What a slot says, with JSON behind it, when it could not reach the driver. */
export const DRIVER_UNREACHABLE = 'DRIVER_UNREACHABLE'
export interface Unreachable {
  /** The name of the machine. */
  readonly from: string
  /** The addresses. */
  readonly tried: string
  readonly why: string
}

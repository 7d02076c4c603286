/** The instructions for a slot. */
export interface SlotInstructions {
  /** Possible addresses of the driver; the first that answers is used. */
  readonly hosts: readonly string[]
  readonly port: number
  readonly token: string
  /** Set if the driver uses TLS. */
  readonly tls?: { readonly ca?: string; readonly serverName?: string }
}

/** Printed by a slot that could not reach the driver, followed by JSON. */
export const DRIVER_UNREACHABLE = 'DRIVER_UNREACHABLE'
export interface Unreachable {
  /** The name of the machine. */
  readonly from: string
  /** The addresses. */
  readonly tried: string
  readonly why: string
}

/** Identifies the client; the same in all requests. */
export interface Who {
  readonly sessionId: string
  readonly userContext: { readonly userId: string }
  readonly clientType: string
  /** The server's own id of the session. With it, a server that has forgotten the session says so instead of making a new one. */
  readonly clientObservedServerSideSessionId?: string
}

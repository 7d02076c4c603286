/** Whose request it is: the same in all of them. */
export interface Who {
  readonly sessionId: string
  readonly userContext: { readonly userId: string }
  readonly clientType: string
  /** The server's own id of the session. With it, a server that has forgotten us says so instead of starting afresh. */
  readonly clientObservedServerSideSessionId?: string
}

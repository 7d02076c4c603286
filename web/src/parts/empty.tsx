import type { ComponentChildren } from 'preact'

/** A message in place of missing content: why there is nothing, and what to do. */
export const Empty = ({ children }: { readonly children: ComponentChildren }) => <div class="empty">{children}</div>

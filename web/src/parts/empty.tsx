import type { ComponentChildren } from 'preact'

/** What a place says if it has nothing to show: why, and what to do. */
export const Empty = ({ children }: { readonly children: ComponentChildren }) => <div class="empty">{children}</div>

import type { ComponentChildren } from 'preact'

export const Labelled = ({ label, children }: { readonly label: string; readonly children: ComponentChildren }) => (
  <div class="labelled">
    <div class="call-label">{label}</div>
    {children}
  </div>
)

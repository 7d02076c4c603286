import type { JSX } from 'preact'
import type { TaskState } from '../../../src/view/api.ts'

type Name = TaskState | 'finished' | 'interrupted' | 'died'

/** Signs in a box of 12 by 12, so that states differ by more than color. */
const SIGNS: Readonly<Record<Name, JSX.Element>> = {
  success: <path d="M2 6.5 5 9.5 10 3" />,
  finished: <path d="M2 6.5 5 9.5 10 3" />,
  failed: <path d="M2.5 2.5 9.5 9.5M9.5 2.5 2.5 9.5" />,
  crashed: <path d="M7 1 3 7H6L5 11 9 5H6Z" />,
  died: <path d="M7 1 3 7H6L5 11 9 5H6Z" />,
  timeout: <path d="M6 1.5a4.5 4.5 0 1 0 .01 0M6 3.5V6L8 7.5" />,
  interrupted: <path d="M4 2.5V9.5M8 2.5V9.5" />,
  cancelled: <path d="M2 6H10" />,
  running: <path d="M3.5 2 9.5 6 3.5 10Z" />,
  pending: <path d="M2.5 6h.01M6 6h.01M9.5 6h.01" />,
}

/** The state of a task or a run: sign, color and word. */
export function State({ state, title }: { readonly state: Name; readonly title?: string }) {
  return (
    <span class={`state state-${state}`} title={title}>
      <StateSign state={state} />
      {state}
    </span>
  )
}

export const StateSign = ({ state }: { readonly state: Name }) => (
  <svg
    viewBox="0 0 12 12"
    aria-hidden="true"
    fill="none"
    stroke="currentColor"
    stroke-width="1.8"
    stroke-linecap="round"
    stroke-linejoin="round"
  >
    {SIGNS[state]}
  </svg>
)

import { useEffect, useLayoutEffect, useRef } from 'preact/hooks'

/** Actions by key; undefined: the key has no effect now. */
export type Keys = Readonly<Record<string, (() => void) | undefined>>

/** Listens for keys, except while the user types in a field or holds a modifier. Keys count as soon as the page appears. */
export function useKeys(keys: Keys): void {
  const latest = useRef(keys)
  latest.current = keys
  useLayoutEffect(() => {
    const press = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || isTyping(event.target)) return
      const action = Object.hasOwn(latest.current, event.key) ? latest.current[event.key] : undefined
      if (!action) return
      event.preventDefault()
      action()
    }
    addEventListener('keydown', press)
    return () => removeEventListener('keydown', press)
  }, [])
}

const isTyping = (target: EventTarget | null) =>
  target instanceof HTMLElement && (target.isContentEditable || /^(?:INPUT|TEXTAREA|SELECT)$/.test(target.tagName))

const LIST = [
  ['j', 'next step'],
  ['k', 'previous step'],
  ['n', 'next failure of the run'],
  ['p', 'previous failure of the run'],
  [']', 'next task of the run'],
  ['[', 'previous task of the run'],
  ['?', 'this list'],
] as const

interface Props {
  readonly isOpen: boolean
  readonly close: () => void
}

/** The list of keyboard shortcuts. */
export function KeyList({ isOpen, close }: Props) {
  const dialog = useRef<HTMLDialogElement>(null)
  useEffect(() => {
    if (isOpen && !dialog.current?.open) dialog.current?.showModal()
    else if (!isOpen) dialog.current?.close()
  }, [isOpen])
  return (
    <dialog ref={dialog} class="key-list" onClose={close} aria-labelledby="key-list-title">
      <h2 id="key-list-title">Keys</h2>
      <dl>
        {LIST.map(([key, text]) => (
          <div>
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{text}</dd>
          </div>
        ))}
      </dl>
      <button type="button" onClick={close}>
        Close
      </button>
    </dialog>
  )
}

import { useState } from 'preact/hooks'

const BACK_MS = 1500

/** Copies a text, which is computed on click, because it may be long. */
export function CopyButton({ text, label = 'Copy' }: { readonly text: () => string; readonly label?: string }) {
  const [said, setSaid] = useState<string | undefined>()
  const copy = async () => {
    setSaid((await isCopied(text())) ? 'Copied' : 'Not copied: the browser refused')
    setTimeout(() => setSaid(undefined), BACK_MS)
  }
  return (
    <button type="button" class="small-button" onClick={() => void copy()}>
      <span aria-live="polite">{said ?? label}</span>
    </button>
  )
}

async function isCopied(text: string): Promise<boolean> {
  try {
    // `navigator.clipboard` is undefined on pages without TLS, except on loopback, and in some browsers for files.
    await navigator.clipboard.writeText(text)
    return true
  } catch {
    return isCopiedByCommand(text)
  }
}

function isCopiedByCommand(text: string): boolean {
  const area = document.createElement('textarea')
  area.value = text
  area.className = 'hidden-text'
  document.body.append(area)
  area.select()
  try {
    return document.execCommand('copy')
  } catch {
    return false
  } finally {
    area.remove()
  }
}

import { signal } from '@preact/signals'

type Theme = 'system' | 'light' | 'dark'
const KEY = 'manyworlds-theme'
const NEXT: Readonly<Record<Theme, Theme>> = { system: 'light', light: 'dark', dark: 'system' }

const theme = signal<Theme>(stored())
apply(theme.value)

/** Switches between the theme of the system, light and dark. */
export function ThemeButton() {
  return (
    <button
      type="button"
      title="Theme: as the system, light or dark"
      onClick={() => {
        theme.value = NEXT[theme.value]
        apply(theme.value)
        store(theme.value)
      }}
    >
      {theme.value === 'system' ? 'Auto' : theme.value === 'light' ? 'Light' : 'Dark'}
    </button>
  )
}

/** For charts, which draw their own colors and must be redrawn when the theme changes. */
export const themeName = theme

function apply(name: Theme): void {
  if (name === 'system') delete document.documentElement.dataset.theme
  else document.documentElement.dataset.theme = name
}

/** In some browsers, pages without storage throw, such as a report that is opened from disk. */
function stored(): Theme {
  try {
    const name = localStorage.getItem(KEY)
    return name === 'light' || name === 'dark' ? name : 'system'
  } catch {
    return 'system'
  }
}

function store(name: Theme): void {
  try {
    localStorage.setItem(KEY, name)
  } catch {}
}

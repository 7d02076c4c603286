// Escape sequences that practically all terminals support.

export const ERASE_BELOW = '\x1b[J'
/** Down a row in the same column, scrolling if necessary. */
export const DOWN = '\x1bD'
export const UP = '\x1b[A'
/** Save and restore the position and colors of the cursor. */
export const SAVE = '\x1b7'
export const RESTORE = '\x1b8'
export const RESET_STYLE = '\x1b[0m'
/** Text that is longer than the row is cut instead of wrapped. */
export const WRAP_OFF = '\x1b[?7l'
export const WRAP_ON = '\x1b[?7h'

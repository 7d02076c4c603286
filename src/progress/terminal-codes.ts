// Escape sequences that practically all terminals understand.

export const ERASE_BELOW = '\x1b[J'
/** Down a row, scrolling if need be, in the same column. */
export const DOWN = '\x1bD'
export const UP = '\x1b[A'
/** Position and colors of the cursor. */
export const SAVE = '\x1b7'
export const RESTORE = '\x1b8'
export const RESET_STYLE = '\x1b[0m'
/** What is longer than a row is cut, not continued on the next one. */
export const WRAP_OFF = '\x1b[?7l'
export const WRAP_ON = '\x1b[?7h'

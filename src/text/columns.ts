/** For output that goes to a file or a pipe. */
const PIPE_COLUMNS = 120
const NARROWEST_PAGE = 40
/** Longer lines are hard to read, however wide the terminal is. */
const WIDEST_PAGE = 100

/** How wide a table for this stream may be. */
export const columnsOf = (stream: NodeJS.WriteStream): number => stream.columns ?? PIPE_COLUMNS

/** How wide prose for this stream may be. */
export const pageWidth = (stream: NodeJS.WriteStream): number =>
  Math.min(WIDEST_PAGE, Math.max(NARROWEST_PAGE, stream.columns ?? WIDEST_PAGE))

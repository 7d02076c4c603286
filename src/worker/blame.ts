/** Name of the global that tells, when the watchdog evaluates it in the stopped event loop, whose code it was. */
export const BLAME = 'manyworlds.blame'

/** The watchdog's only message: it watches. Node may post messages of its own on the same port. */
export const WATCHING = 'manyworlds.watching'

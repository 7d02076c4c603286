/** Name of the global that tells, when the watchdog evaluates it in the stopped event loop, whose code it was. */
export const BLAME = 'manyworlds.blame'

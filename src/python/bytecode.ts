import { dirname, join } from 'node:path'

/**
 * Variables for programs on one of our own Pythons. What Python compiles is kept in the folder of its environment, not beside
 * our programs, which are in somebody's node_modules. It is kept even where the user's variables say otherwise, as they do in
 * many containers: a Ray starts a dozen Python processes, and each would compile all that it imports.
 */
export const keptBytecode = (python: string): NodeJS.ProcessEnv => ({
  PYTHONPYCACHEPREFIX: join(dirname(dirname(python)), 'bytecode'),
  PYTHONDONTWRITEBYTECODE: undefined,
})

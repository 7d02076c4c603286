import { dirname, join } from 'node:path'

/**
 * Environment variables for programs in one of our Python environments. Bytecode is cached in the environment's folder,
 * not beside our programs in node_modules. It is cached even if the user's variables disable that, as in many
 * containers, because Ray starts a dozen Python processes, each of which would compile all its imports.
 */
export const keptBytecode = (python: string): NodeJS.ProcessEnv => ({
  PYTHONPYCACHEPREFIX: join(dirname(dirname(python)), 'bytecode'),
  PYTHONDONTWRITEBYTECODE: undefined,
})

import { ManyworldsError } from '../errors.ts'
import { cacheFolder, privateFolder } from '../private-folder.ts'

/** Where Python environments are, and the programs that run in them: nobody else may be able to exchange those. */
export function pythonFolder(): string {
  try {
    return privateFolder(cacheFolder('python'))
  } catch (cause) {
    throw new ManyworldsError(
      'PYTHON_SETUP_FAILED',
      `${(cause as Error).message}; programs in it may have been exchanged: remove it, or name a folder of your own with XDG_CACHE_HOME`,
      { cause },
    )
  }
}

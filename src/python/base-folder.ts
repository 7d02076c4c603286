import { ManyworldsError } from '../errors.ts'
import { cacheFolder, privateFolder } from '../private-folder.ts'

/** The folder of Python environments and the programs that run in them. It must not be writable by other users. */
export function pythonFolder(): string {
  try {
    return privateFolder(cacheFolder('python'))
  } catch (cause) {
    throw new ManyworldsError(
      'PYTHON_SETUP_FAILED',
      `${(cause as Error).message}; other users could have replaced programs in it; remove it, or use another folder with XDG_CACHE_HOME`,
      { cause },
    )
  }
}

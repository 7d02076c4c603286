import { UsageError } from '../../frame/usage-error.ts'

/** `like`: an example of a valid version. */
export function checkVersion(version: string, like: string): void {
  if (!/^\d+\.\d+\.\d+\w*$/.test(version))
    throw new UsageError(`--version must be a version such as ${like}; it is ${version}`)
}

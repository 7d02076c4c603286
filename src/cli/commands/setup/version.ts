import { UsageError } from '../../frame/usage-error.ts'

/** `like`: one that can be had. */
export function checkVersion(version: string, like: string): void {
  if (!/^\d+\.\d+\.\d+\w*$/.test(version))
    throw new UsageError(`--version must be a version such as ${like}, not ${version}`)
}

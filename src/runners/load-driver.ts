import { createRequire } from 'node:module'
import { refuseBundled } from '../call-site.ts'
import type * as driver from './driver.ts'

/**
 * Everything that only a driver needs, loaded when it is first used: workers import this package too, for `defineAgent`,
 * and should not wait for an executor and a schema library that they never use.
 */
export async function loadDriver(): Promise<typeof driver> {
  if (loaded) return loaded
  refuseBundled()
  return (loaded = await import('./driver.ts'))
}

// Even a repeated import costs 80 µs, and a call with few tasks takes little more.
let loaded: typeof driver | undefined

/** The same, for synchronous callers. */
export function requireDriver(): typeof driver {
  refuseBundled()
  const extension = import.meta.url.endsWith('.ts') ? '.ts' : '.js'
  return createRequire(import.meta.url)(`./driver${extension}`) as typeof driver
}

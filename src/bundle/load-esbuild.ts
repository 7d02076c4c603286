import type * as Esbuild from 'esbuild'
import { BUNDLER_PEERS, requirePeers } from '../optional-peers.ts'

// Not a literal in `import()`, on purpose: a bundle that contains manyworlds contains this file, and must not draw in esbuild.
const ESBUILD: string = 'esbuild'

/** esbuild, which only runs on other machines need. Throws an error that says how to install it. */
export async function loadEsbuild(): Promise<typeof Esbuild> {
  requirePeers('sending code to workers on other machines', BUNDLER_PEERS)
  return (await import(ESBUILD)) as typeof Esbuild
}

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { ManyworldsError } from './errors.ts'
import { ownPackage } from './own-package.ts'
import { shellWord } from './text/own-command.ts'

/** Packages that are needed together. */
export interface PeerGroup {
  /** For `doctor`. */
  readonly name: string
  readonly packages: readonly string[]
}

/** Sends code to other machines: it makes one file of an agent and what that imports. */
export const BUNDLER_PEERS = ['esbuild'] as const

/** Talks to a Spark Connect server (gRPC and Protobuf), and reads and writes tables (Arrow). */
export const SPARK_PEERS = [
  '@connectrpc/connect',
  '@connectrpc/connect-node',
  '@bufbuild/protobuf',
  '@uwdata/flechette',
] as const

export const BUNDLER: PeerGroup = { name: 'esbuild', packages: BUNDLER_PEERS }
export const SPARK_CONNECT: PeerGroup = { name: 'Spark Connect', packages: SPARK_PEERS }

/**
 * Throws one error that says what to install if a feature needs packages that are not installed. Call it before work starts: the
 * modules that import those packages are loaded later, with a dynamic import.
 */
export function requirePeers(feature: string, names: readonly string[]): void {
  const missing = missingPeers(names)
  if (missing.length === 0) return
  throw new ManyworldsError(
    'PACKAGE_MISSING',
    `${feature} needs ${missing.length === 1 ? 'a package that is' : 'packages that are'} not installed: ${installCommand(missing)}`,
  )
}

export const missingPeers = (names: readonly string[]): string[] => names.filter((name) => !isInstalled(name))

/** With the versions that this package works with: `npm install esbuild@^0.28.2`. */
export const installCommand = (names: readonly string[]): string => {
  const ranges = peerRanges()
  return `npm install ${names.map((name) => shellWord(name in ranges ? `${name}@${ranges[name]}` : name)).join(' ')}`
}

function isInstalled(name: string): boolean {
  try {
    import.meta.resolve(name)
    return true
  } catch {
    return false
  }
}

function peerRanges(): Readonly<Record<string, string>> {
  try {
    const json = JSON.parse(readFileSync(join(ownPackage.folder, 'package.json'), 'utf8')) as {
      peerDependencies?: Record<string, string>
    }
    return json.peerDependencies ?? {}
  } catch {
    // In a bundle on another machine there is no package.json.
    return {}
  }
}

import { registerHooks } from 'node:module'
import { join, relative, sep } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import type { AgentRef } from '../agent.ts'
import { BUNDLE_FILE } from '../call-site.ts'
import type { BundlePlace } from '../protocol/messages.ts'
import { registry } from '../registry.ts'

/** Set by the host of a worker: the folder in which it puts bundles, each in a folder named by its hash. */
export const BUNDLES_VARIABLE = 'MANYWORLDS_BUNDLES'
/** Also set by the host: the folder from which a bundle may import packages. */
export const PACKAGES_VARIABLE = 'MANYWORLDS_PACKAGES'

const folder = process.env[BUNDLES_VARIABLE]
const packages = process.env[PACKAGES_VARIABLE]
delete process.env[BUNDLES_VARIABLE]
delete process.env[PACKAGES_VARIABLE]

/** How the driver and a worker on another machine name a bundled module: neither knows the other's folders. */
const SCHEME = 'bundle:'

interface Bundle {
  readonly modules: Readonly<Record<string, () => Promise<unknown>>>
}

/** The URL of a bundled module on this machine. From now on, the bundle's source map tells the modules of agents apart. */
export function moduleInBundle({ sha256 }: BundlePlace, label: string): string {
  if (folder === undefined) throw new Error('this worker was started without a folder for bundles')
  if (!registry.bundled) {
    registry.bundled = true
    // Node reads a source map only when it imports the file.
    process.setSourceMapsEnabled(true)
    if (packages !== undefined) findPackagesIn(packages)
  }
  return pathToFileURL(join(folder, sha256, label)).href
}

/** Imports a module, from its bundle if it has one. */
export async function importModule(url: string): Promise<void> {
  const place = placeOf(url)
  if (place === undefined) {
    await import(url)
    return
  }
  const { modules } = (await import(pathToFileURL(join(folder!, place.sha256, BUNDLE_FILE)).href)) as Bundle
  const load = modules[place.label]
  if (load === undefined) throw new Error(`the bundle ${place.sha256.slice(0, 12)} has no module ${place.label}`)
  await load()
}

/** A reference that the driver understands. */
export function refForDriver(ref: AgentRef): AgentRef {
  const place = placeOf(ref.module)
  return place === undefined ? ref : { ...ref, module: `${SCHEME}${place.sha256}/${place.label}` }
}

/** Finds packages that the bundle leaves out on purpose: they are installed in another folder of this machine. */
function findPackagesIn(installed: string): void {
  const bundles = pathToFileURL(`${folder}/`).href
  const parentURL = pathToFileURL(`${installed}/`).href
  registerHooks({
    resolve(specifier, context, nextResolve) {
      try {
        return nextResolve(specifier, context)
      } catch (error) {
        const asked = /^[^./]/.test(specifier) && context.parentURL?.startsWith(bundles)
        if (!asked) throw error
        try {
          return nextResolve(specifier, { ...context, parentURL })
        } catch {
          throw error
        }
      }
    },
  })
}

function placeOf(url: string): { sha256: string; label: string } | undefined {
  if (folder === undefined || !url.startsWith('file:')) return undefined
  const [sha256, ...label] = relative(folder, fileURLToPath(url)).split(sep)
  return sha256 === undefined || sha256 === '..' || label.length === 0 ? undefined : { sha256, label: label.join('/') }
}

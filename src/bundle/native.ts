import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import type { BuildFailure } from 'esbuild'
import { ManyworldsError } from '../errors.ts'
import { type BuildRequest, type Built, build, withheldName } from './build.ts'
import { isBuildFailure, unresolved } from './build-errors.ts'
import type { Layout, PackageFolder } from './layout.ts'

/** What packages depend on to compile or find a binary. Two of them can also be called by the user's own code. */
const ADDON_TOOLS = [
  'bindings',
  'node-gyp-build',
  'node-gyp-build-optional-packages',
  'node-addon-api',
  'nan',
  'node-gyp',
  'node-pre-gyp',
  '@mapbox/node-pre-gyp',
  'prebuild-install',
  'pkg-prebuilds',
  'cmake-js',
]
const ADDON_LOADERS = ['bindings', 'node-gyp-build']
const COMPILES = /\b(node-gyp|node-gyp-build|node-pre-gyp|prebuild-install|cmake-js)\b/
/** One package per platform, of which npm installs the one that fits: `@img/sharp-linux-x64`. */
const PLATFORM_PACKAGE = /(linux|darwin|win32|freebsd|android)(musl)?[-_](x64|arm64|ia32|arm)/

/** Whether a package needs a file that was compiled for one platform. Most find it at run time, where no bundler sees it. */
function isNativePackage({ name, folder, json }: PackageFolder): boolean {
  const scripts = [json.scripts?.preinstall, json.scripts?.install, json.scripts?.postinstall]
  return (
    ADDON_LOADERS.includes(name) ||
    json.gypfile === true ||
    (json.gypfile !== false && existsSync(join(folder, 'binding.gyp'))) ||
    (typeof json.binary === 'object' && json.binary !== null) ||
    (typeof json.napi === 'object' && json.napi !== null) ||
    ADDON_TOOLS.some((tool) => json.dependencies?.[tool] !== undefined) ||
    scripts.some((script) => script !== undefined && COMPILES.test(script)) ||
    Object.keys(json.optionalDependencies ?? {}).some((dependency) => PLATFORM_PACKAGE.test(dependency))
  )
}

/**
 * Builds, and refuses native modules that the code needs. If one is optional (`bufferutil` in `ws`), it is left out: the
 * bundle does without it, or finds it on the node. esbuild knows which is which: it accepts a missing package inside a `try`.
 */
export async function buildWithoutNative(request: BuildRequest): Promise<Built> {
  const { layout } = request
  let native: string[]
  try {
    const built = await build(request)
    native = nativePackages(built, layout)
    if (native.length === 0) return built
  } catch (error) {
    if (!isBuildFailure(error)) throw error
    native = packagesMissingTheirAddon(error, layout)
    if (native.length === 0) throw error
  }
  try {
    const built = await build({ ...request, withheld: native })
    const leftOut = native.filter((name) => built.externals.includes(name))
    const warnings = leftOut.map(
      (name) =>
        `'${name}' is a native module that the code can do without, so the bundle leaves it out; to use it, install it on the nodes`,
    )
    return { ...built, warnings: [...built.warnings, ...warnings] }
  } catch (error) {
    if (isBuildFailure(error)) refuseNeeded(error, layout)
    throw error
  }
}

function nativePackages({ inputs }: Built, layout: Layout): string[] {
  const names = new Set<string>()
  for (const path of inputs.keys()) {
    const owner = layout.isOwn(path) ? undefined : layout.packageOf(path)
    if (owner && (path.endsWith('.node') || isNativePackage(owner))) names.add(owner.name)
    else if (path.endsWith('.node')) refuseOwn(path, inputs, layout)
  }
  return [...names].sort()
}

/** A package that names its addon in a plain `require('./build/Release/x.node')`, on a machine where it was not compiled. */
function packagesMissingTheirAddon({ errors }: BuildFailure, layout: Layout): string[] {
  const files = errors.filter((error) => unresolved(error)?.endsWith('.node')).map((error) => error.location?.file)
  const paths = files.filter((file) => file !== undefined).map((file) => resolve(layout.root, file))
  const owners = paths.filter((path) => !layout.isOwn(path)).map((path) => layout.packageOf(path)?.name)
  return [...new Set(owners.filter((name) => name !== undefined))]
}

function refuseNeeded({ errors }: BuildFailure, layout: Layout): void {
  const importers = new Map<string, Set<string>>()
  for (const { text, location } of errors) {
    const name = withheldName(text)
    if (name === undefined) continue
    const places = importers.get(name) ?? importers.set(name, new Set()).get(name)!
    if (location) places.add(`${layout.label(resolve(layout.root, location.file))}:${location.line}`)
  }
  if (importers.size === 0) return
  const names = [...importers.keys()]
  const lines = [...importers].map(([name, places]) => `  '${name}', imported by ${[...places].join(', ')}`)
  const message = [
    'native modules cannot be bundled: they are compiled for one platform and found at run time.',
    ...lines,
    `Leave them out with bundle: { external: [${names.map((name) => `'${name}'`).join(', ')}] } and install them on the nodes`,
    `(npm install ${names.join(' ')}).`,
  ].join('\n')
  throw new ManyworldsError('BUNDLE_NATIVE_MODULE', message)
}

function refuseOwn(path: string, inputs: Built['inputs'], layout: Layout): never {
  const importer = [...inputs].find(([, { imports }]) =>
    imports.some((item) => resolve(layout.root, item.path) === path),
  )
  const message =
    `the native module ${layout.label(path)}, imported by ${importer ? layout.label(importer[0]) : 'the entry'}, cannot be bundled. ` +
    `Put it into a package, install that on the nodes, and leave it out with bundle: { external: ['its-name'] }.`
  throw new ManyworldsError('BUNDLE_NATIVE_MODULE', message)
}

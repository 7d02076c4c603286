import { fileURLToPath } from 'node:url'
import { brotliCompressSync } from 'node:zlib'
import type { Plugin } from 'esbuild'
import { loadEsbuild } from '../../bundle/load-esbuild.ts'
import { ownPackage } from '../../own-package.ts'

const SLOT = new URL(`../../host/slot${import.meta.url.slice(import.meta.url.lastIndexOf('.'))}`, import.meta.url)

let built: Promise<string> | undefined

/** The program of a slot in one file, compressed, as text (about 40 KB): executors have Node.js but none of our files. */
export function makeSlotProgram(): Promise<string> {
  return (built ??= build())
}

/** Printed by a slot, followed by JSON, if its Node.js is too old. */
export const NODE_TOO_OLD = 'NODE_TOO_OLD'

async function build(): Promise<string> {
  const esbuild = await loadEsbuild()
  const { outputFiles } = await esbuild.build({
    ...{ entryPoints: [fileURLToPath(SLOT)], bundle: true, write: false, platform: 'node', format: 'esm' },
    ...{ target: 'node18', minify: true, charset: 'utf8', legalComments: 'none', logLevel: 'silent' },
    // `ws` is CommonJS and requires built-in modules.
    banner: {
      js: `import{createRequire as mwRequire}from'node:module';const require=mwRequire(import.meta.url);${versionCheck()}`,
    },
    // Optional parts of `ws` that are not installed here either.
    external: ['bufferutil', 'utf-8-validate'],
    plugins: [ownPackageAsIs],
  })
  return brotliCompressSync(outputFiles[0]!.contents).toString('base64')
}

/** Checked before anything else runs: an old Node.js would fail somewhere in the middle. */
function versionCheck(): string {
  const [major, minor] = ownPackage.oldestNode.split('.')
  return `{const[a,b]=process.versions.node.split('.').map(Number);if(a<${major}||a===${major}&&b<${minor}){console.error('${NODE_TOO_OLD} '+JSON.stringify({host:(await import('node:os')).hostname(),node:process.version}));await new Promise(r=>setTimeout(r,500));process.exit(86)}}`
}

/** Replaced because it reads package.json, which is not sent. */
const ownPackageAsIs: Plugin = {
  name: 'own-package',
  setup({ onLoad }) {
    onLoad({ filter: /[\\/]own-package\.[jt]s$/ }, () => ({
      contents: `export const ownPackage = ${JSON.stringify({ ...ownPackage, folder: '' })}`,
    }))
  },
}

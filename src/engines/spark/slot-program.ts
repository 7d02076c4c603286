import { fileURLToPath } from 'node:url'
import { brotliCompressSync } from 'node:zlib'
import type { Plugin } from 'esbuild'
import { ESBUILD } from '../../bundle/build.ts'
import { ownPackage } from '../../own-package.ts'

const SLOT = new URL(`../../host/slot${import.meta.url.slice(import.meta.url.lastIndexOf('.'))}`, import.meta.url)

let built: Promise<string> | undefined

/** The program of a slot in one piece, compressed, as text (some 40 KB): executors have Node, and nothing of ours. */
export function makeSlotProgram(): Promise<string> {
  return (built ??= build())
}

/** What a slot says, with JSON behind it, when the Node there is too old for it. */
export const NODE_TOO_OLD = 'NODE_TOO_OLD'

async function build(): Promise<string> {
  const esbuild = (await import(ESBUILD)) as typeof import('esbuild')
  const { outputFiles } = await esbuild.build({
    ...{ entryPoints: [fileURLToPath(SLOT)], bundle: true, write: false, platform: 'node', format: 'esm' },
    ...{ target: 'node18', minify: true, charset: 'utf8', legalComments: 'none', logLevel: 'silent' },
    // `ws` is CommonJS, and requires modules of Node's own.
    banner: {
      js: `import{createRequire as mwRequire}from'node:module';const require=mwRequire(import.meta.url);${versionCheck()}`,
    },
    // Optional parts of `ws` that are not installed here either.
    external: ['bufferutil', 'utf-8-validate'],
    plugins: [ownPackageAsIs],
  })
  return brotliCompressSync(outputFiles[0]!.contents).toString('base64')
}

/** Before anything else runs: what is missing in an old Node would be found out in the middle of something. */
function versionCheck(): string {
  const [major, minor] = ownPackage.oldestNode.split('.')
  return `{const[a,b]=process.versions.node.split('.').map(Number);if(a<${major}||a===${major}&&b<${minor}){console.error('${NODE_TOO_OLD} '+JSON.stringify({host:(await import('node:os')).hostname(),node:process.version}));await new Promise(r=>setTimeout(r,500));process.exit(86)}}`
}

/** It reads package.json, which does not travel. */
const ownPackageAsIs: Plugin = {
  name: 'own-package',
  setup({ onLoad }) {
    onLoad({ filter: /[\\/]own-package\.[jt]s$/ }, () => ({
      contents: `export const ownPackage = ${JSON.stringify({ ...ownPackage, folder: '' })}`,
    }))
  },
}

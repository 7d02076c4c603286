import { dirname, extname, join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { CodeBundle } from '../engines/engine.ts'
import { BUNDLE_FILE, bundleHash } from './index.ts'
import { loadEsbuild } from './load-esbuild.ts'

const CODEC_PACKAGE = {
  path: 'node_modules/devalue/package.json',
  bytes: Buffer.from(JSON.stringify({ name: 'devalue', type: 'module', exports: './index.mjs' })),
}

const built = new Map<string, Promise<CodeBundle>>()

/**
 * Bundles the worker's own program: workers on other machines run the driver's version of it, whatever is installed
 * there. `workerEntry` is that program here; the threads that it starts are files beside it.
 */
export function makeRuntime(workerEntry: string): Promise<CodeBundle> {
  let runtime = built.get(workerEntry)
  if (runtime === undefined) built.set(workerEntry, (runtime = buildRuntime(workerEntry)))
  return runtime
}

async function buildRuntime(workerEntry: string): Promise<CodeBundle> {
  const esbuild = await loadEsbuild()
  const { outputFiles } = await esbuild.build({
    entryPoints: {
      [BUNDLE_FILE.replace(/\.mjs$/, '')]: workerEntry,
      watchdog: join(dirname(workerEntry), `watchdog${extname(workerEntry)}`),
      'side-thread': join(dirname(workerEntry), `side-thread${extname(workerEntry)}`),
      // The portable codec is imported by name when it is first used.
      'node_modules/devalue/index': fileURLToPath(import.meta.resolve('devalue')),
    },
    outdir: 'out',
    outExtension: { '.js': '.mjs' },
    bundle: true,
    splitting: true,
    write: false,
    platform: 'node',
    format: 'esm',
    target: 'node22',
    charset: 'utf8',
    legalComments: 'none',
    logLevel: 'silent',
    sourcemap: false,
  })
  const folder = resolve('out')
  const files = [
    ...outputFiles.map(({ path, contents }) => ({ path: relative(folder, path), bytes: contents })),
    CODEC_PACKAGE,
  ].sort((a, b) => (a.path < b.path ? -1 : 1))
  const code = files.find(({ path }) => path === BUNDLE_FILE)!.bytes
  const beside = files.filter(({ path }) => path !== BUNDLE_FILE)
  return { sha256: bundleHash(code, beside), code, files: beside }
}

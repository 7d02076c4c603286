import { fileURLToPath } from 'node:url'
import type { Plugin } from 'vitest/config'
import packageJson from '../../package.json' with { type: 'json' }

const root = fileURLToPath(new URL('../..', import.meta.url))
const asSource = (built: string) => built.replace(/\bdist\//, 'src/').replace(/\.js$/, '.ts')

/** Loads src/ where a test says dist/ or names the package: unit tests need no build, and never test an old one. */
export function fromSource(): Plugin {
  return {
    name: 'manyworlds:from-source',
    enforce: 'pre',
    resolveId(imported, importer) {
      if (imported === 'manyworlds' || imported.startsWith('manyworlds/')) {
        const entry = (packageJson.exports as Record<string, { default: string } | string>)[
          imported.replace('manyworlds', '.')
        ]
        return typeof entry === 'object' ? root + asSource(entry.default).slice(2) : undefined
      }
      return /^\.\.?\/(?:\.\.\/)*dist\//.test(imported) ? this.resolve(asSource(imported), importer) : undefined
    },
  }
}

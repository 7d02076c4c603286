import { readFile } from 'node:fs/promises'
import type { Plugin } from 'esbuild'
import type { Layout } from './layout.ts'

/**
 * In one file, every module would have the same `import.meta.url` and `__dirname`. This gives each module its own again: its
 * path in the bundle's folder, so that it finds the files beside it.
 */

const HERE = '__manyworlds_here'

/** Stands before everything else in the bundle. CommonJS packages call `require`, which a plain ES module does not have. */
export const BANNER = `import { createRequire as __manyworlds_createRequire } from 'node:module'
import { fileURLToPath as __manyworlds_fileURLToPath } from 'node:url'
const require = __manyworlds_createRequire(import.meta.url)
const __manyworlds_at = (label) => {
  const url = new URL(label, import.meta.url)
  const filename = __manyworlds_fileURLToPath(url)
  return { url: url.href, filename, dirname: __manyworlds_fileURLToPath(new URL('.', url)).slice(0, -1) }
}`

/** esbuild replaces only what the module has not declared itself: `const __dirname = …` in the user's code stays as it is. */
export const DEFINE = {
  'import.meta.url': `${HERE}.url`,
  'import.meta.filename': `${HERE}.filename`,
  'import.meta.dirname': `${HERE}.dirname`,
  __filename: `${HERE}.filename`,
  __dirname: `${HERE}.dirname`,
}

const ASKS_WHERE_IT_IS = /\bimport\s*\.\s*meta\b|\b__(?:dir|file)name\b/

/** `seen` is called with each module that asks where it is. */
export function ownLocation(layout: Layout, seen: (path: string) => void): Plugin {
  return {
    name: 'manyworlds-own-location',
    setup(build) {
      build.onLoad({ filter: /\.[cm]?[jt]sx?$/, namespace: 'file' }, async ({ path }) => {
        const source = await readFile(path, 'utf8')
        if (!ASKS_WHERE_IT_IS.test(source)) return undefined
        seen(path)
        const label = layout.label(path).split('/').map(encodeURIComponent).join('/')
        // On the first line, so that the line numbers of the source map stay right.
        const here = `const ${HERE} = __manyworlds_at(${JSON.stringify(`./${label}`)});`
        return { contents: here + source.replace(/^#!/, '//'), loader: 'default' }
      })
    },
  }
}

import { glob } from 'node:fs/promises'
import { join } from 'node:path'
import type { Built } from './build.ts'
import type { Layout } from './layout.ts'

/**
 * Data that packages read from their own folder: playwright-core its browsers.json, many their version from package.json. A package
 * whose bundled code asks where it is gets its JSON and WebAssembly files shipped; anything else can be named in `bundle.files`.
 */
export async function findPackageData({ askWhereTheyAre }: Built, layout: Layout): Promise<string[]> {
  const owners = askWhereTheyAre.filter((path) => !layout.isOwn(path)).map((path) => layout.packageOf(path)?.folder)
  const folders = new Set(owners.filter((folder) => folder !== undefined))
  const found = await Promise.all(
    [...folders].map(async (folder) => {
      const matches: string[] = []
      for await (const match of glob('**/*.{json,wasm}', {
        cwd: folder,
        exclude: (name) => name.endsWith('node_modules'),
      }))
        matches.push(join(folder, match))
      return matches
    }),
  )
  return found.flat().sort()
}

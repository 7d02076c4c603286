import type { Plugin } from 'esbuild'
import { missingPeers, SPARK_PEERS } from '../optional-peers.ts'
import { ownPackage } from '../own-package.ts'
import type { Layout } from './layout.ts'

const MISSING = 'manyworlds-missing-peer'

/**
 * Agents import this package, and with it the parts that talk to Spark, which workers never run. If the packages of those parts are
 * not installed, a module that throws takes their place: esbuild would fail at imports that it cannot resolve.
 */
export function missingPeersThrow(layout: Layout): Plugin {
  return {
    name: 'manyworlds-missing-peers',
    setup({ onResolve, onLoad }) {
      const missing = missingPeers(SPARK_PEERS)
      if (missing.length === 0) return
      onResolve({ filter: /^@/ }, ({ path, importer }) => {
        const isMissing = missing.some((name) => path === name || path.startsWith(`${name}/`))
        // The user's own import of a missing package stays an error.
        const isOurs = layout.packageOf(importer)?.name === ownPackage.name
        return isMissing && isOurs ? { path, namespace: MISSING } : undefined
      })
      // CommonJS, so that every name can be imported from it.
      onLoad({ filter: /./, namespace: MISSING }, ({ path }) => ({
        contents: `throw new Error(${JSON.stringify(`package '${path}' was not installed where this bundle was made`)})`,
      }))
    },
  }
}

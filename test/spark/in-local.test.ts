import { testEngine } from '../../dist/testing/index.js'

/**
 * A Spark that the engine starts for itself: the parts of the conformance kit that notice how it starts, dies and ends. The other
 * parts run the same code as on a cluster that is already there (cluster.test.ts).
 */
testEngine(
  'spark (inLocal)',
  { module: new URL('./engine.ts', import.meta.url), export: 'makeLocalSpark' },
  { parts: ['answers', 'crashes', 'volume', 'end'] },
)

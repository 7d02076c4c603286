import { testEngine } from '../../dist/testing/index.js'

/** The conformance kit on a Spark that the engine starts for itself. */
testEngine('spark (inLocal)', { module: new URL('./engine.ts', import.meta.url), export: 'makeLocalSpark' })

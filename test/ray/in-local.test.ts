import { testEngine } from '../../dist/testing/index.js'

/** The conformance kit on a Ray that the engine starts for itself. */
testEngine('ray (inLocal)', { module: new URL('./engine.ts', import.meta.url), export: 'makeLocalRay' })

import { testEngine } from 'manyworlds/testing'

testEngine('local', { module: new URL('../../dist/index.js', import.meta.url), export: 'LocalRuntime' })

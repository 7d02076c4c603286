import { testEngine } from 'manyworlds/testing'

testEngine(
  'inline',
  { module: new URL('../../dist/index.js', import.meta.url), export: 'InlineRuntime' },
  { sideWire: false, processes: false },
)

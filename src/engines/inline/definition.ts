import { defineEngine } from '../definition.ts'
import { InlineRuntime } from './inline-runtime.ts'

export const inlineEngine = defineEngine({
  name: 'inline',
  where: "in the driver's own process, to debug and test agents",
  onThisMachine: true,
  inDriver: true,
  workers: 1,
  make: () => new InlineRuntime(),
})

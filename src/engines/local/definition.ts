import { defineEngine } from '../definition.ts'
import { LocalRuntime } from './local-runtime.ts'

export const localEngine = defineEngine({
  name: 'local',
  where: 'on this machine',
  onThisMachine: true,
  workers: 'cores',
  make: () => new LocalRuntime(),
})

import { defineAgent } from 'manyworlds'
import { priceOf } from './mocked.ts'

export const priced = defineAgent({ name: 'priced', run: async (count: number) => count * priceOf() })

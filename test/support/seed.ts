/** Fuzzers of the storm draw by its seed. */
import fc from 'fast-check'
import { SEED } from './storm.ts'

fc.configureGlobal({ ...fc.readConfigureGlobal(), seed: SEED })

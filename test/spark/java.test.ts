import { expect, test } from 'vitest'
import { findJava } from '../../dist/engines/spark/java.js'
import { whyNoSpark } from '../support/needs-java.ts'

const why = whyNoSpark()

test.skipIf(why !== undefined)(why === undefined ? 'Java is here' : `the tests of Spark are left out: ${why}`, () => {
  expect(findJava().version).toMatch(/^\d+/)
})

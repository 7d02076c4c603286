import { findJava } from '../../src/engines/spark/java.ts'

/** Python and Spark are set up by the tests themselves; Java is the machine's. Why it cannot be used, if it cannot; under CI that is a failure. */
export function whyNoSpark(): string | undefined {
  try {
    findJava()
    return undefined
  } catch (error) {
    if (process.env.CI) throw error
    return (error as Error).message
  }
}

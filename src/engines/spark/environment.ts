import type { Needs } from '../../python/environment.ts'
import { lockOf } from '../../python/locks.ts'

/** What is installed for `inLocal`. Clusters may have others: the protocol is the same from 4.0 on. */
export const SPARK_VERSION = '4.3.0'

/** Spark is in PySpark's package, jars and all. */
export const needsOf = (version: string): Needs => ({
  title: `Spark ${version}`,
  folder: `spark-${version}`,
  packages: [`pyspark==${version}`],
  python: '3.11',
  lock: lockOf(`spark-${version}.txt`),
})

import type { PythonEnvSpec } from '../../python/environment.ts'
import { lockOf } from '../../python/locks.ts'

/** The version installed for `inLocal`. Clusters may have others: the protocol is the same from 4.0 on. */
export const SPARK_VERSION = '4.3.0'

/** PySpark's package includes Spark's jars. */
export const needsOf = (version: string): PythonEnvSpec => ({
  title: `Spark ${version}`,
  folder: `spark-${version}`,
  packages: [`pyspark==${version}`],
  python: '3.11',
  lock: lockOf(`spark-${version}.txt`),
})

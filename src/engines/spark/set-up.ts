import { type Made, makeAndAsk } from '../../cli/commands/setup/make.ts'
import type { SetupArgs } from '../../cli/commands/setup/spec.ts'
import { checkVersion } from '../../cli/commands/setup/version.ts'
import { UsageError } from '../../cli/frame/usage-error.ts'
import { isAtLeast } from '../../is-at-least.ts'
import { needsOf, SPARK_VERSION } from './environment.ts'
import { findJava } from './java.ts'

/** The first version whose PySpark package includes all of Spark Connect. */
const OLDEST_SPARK = '4.0'

const ASK_SUBMIT = `
import os, pyspark
home = os.path.dirname(pyspark.__file__)
os.environ["SPARK_HOME"] = home
os.execv(os.path.join(home, "bin", "spark-submit"), ["spark-submit", "--version"])
`

/** Runs spark-submit, which starts a JVM and prints versions. Like the engine, it ignores SPARK_HOME and PYTHONPATH. */
const ASK = ['-I', '-c', ASK_SUBMIT]

/** Installs the Python environment from which `--in-local` starts Spark. */
export async function setUpSpark({ version = SPARK_VERSION, force }: SetupArgs): Promise<Made> {
  checkVersion(version, SPARK_VERSION)
  if (!isAtLeast(version, OLDEST_SPARK))
    throw new UsageError(`--version must be ${OLDEST_SPARK} or newer, which have Spark Connect, not ${version}`)
  // Check before hundreds of megabytes are downloaded.
  findJava()
  return makeAndAsk(needsOf(version), force, ASK, inWords)
}

/** The output is Spark's logo with its version, then `Using Scala version 2.13.18, OpenJDK 64-Bit Server VM, 17.0.15`. */
function inWords(output: string): string | undefined {
  const spark = /\bversion (\d+\.\d+\S*)$/m.exec(output)?.[1]
  const java = /^Using Scala version .*, (\S+)$/m.exec(output)?.[1]
  return spark === undefined || java === undefined ? undefined : `Spark ${spark} on Java ${java}`
}

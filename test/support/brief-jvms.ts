/**
 * For JVMs that live for a minute. Most of the time of a young Spark goes into compiling code that it runs a few times:
 * without the second compiler, and without the threads of the usual garbage collector, it starts in half of the time.
 */
export const BRIEF_JVM = '-XX:TieredStopAtLevel=1 -XX:+UseSerialGC'

/** Where Spark looks for the options of its programs. Those of executors are a setting of the application. */
export const BRIEF_JVMS = {
  SPARK_LAUNCHER_OPTS: BRIEF_JVM,
  SPARK_SUBMIT_OPTS: BRIEF_JVM,
  SPARK_DAEMON_JAVA_OPTS: BRIEF_JVM,
}

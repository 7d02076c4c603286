/**
 * The entry point of a worker process. No task may start before the watchdog thread runs, and the thread takes longest to
 * start. So it is started first, while the rest of the worker loads. Only signals come before it.
 */
import './stop-signals.ts'
import './watchdog-start.ts'
import { checkNode } from '../oldest-node.ts'

try {
  checkNode()
} catch (error) {
  // The parent process shows the last lines of stderr.
  process.stderr.write(`manyworlds: ${(error as Error).message} [NODE_TOO_OLD]\n`)
  process.exit(1)
}
await import('./main.ts')

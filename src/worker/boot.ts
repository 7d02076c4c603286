/**
 * Where a worker process begins. Its watchdog thread takes longest to come up, and no task may start before it is there;
 * so it is started first, and the rest of the worker loads beside it.
 */
import './watchdog-start.ts'
import { checkNode } from '../oldest-node.ts'

try {
  checkNode()
} catch (error) {
  // Whoever started this process shows what it printed last.
  process.stderr.write(`manyworlds: ${(error as Error).message} [NODE_TOO_OLD]\n`)
  process.exit(1)
}
await import('./main.ts')

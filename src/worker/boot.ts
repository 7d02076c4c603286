/**
 * Where a worker process begins. Its watchdog thread takes longest to come up, and no task may start before it is there;
 * so it is started first, and the rest of the worker loads beside it.
 */
import './watchdog-start.ts'

await import('./main.ts')

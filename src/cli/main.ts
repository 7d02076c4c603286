#!/usr/bin/env node
import { guardExit } from '../guard-exit.ts'
import { ownPackage } from '../own-package.ts'
import { isAtLeast } from './version.ts'

/** As a shell says it of programs that SIGPIPE ended. */
const NOBODY_READS = 141

const words = process.argv.slice(2)
for (const stream of [process.stdout, process.stderr]) stream.on('error', leave)

// `doctor` says what to do about an old Node, and so it is to run there. Imports come after this check, since those of
// the other commands fail on an old Node with an error that says nothing.
if (isAtLeast(process.versions.node, ownPackage.oldestNode) || words[0] === 'doctor') {
  const { program } = await import('./program.ts')
  // Those that others wait for: a scheduler for its machine, a script for the end of a run.
  if (['node', 'run', 'train', 'rollout-server'].includes(words[0] ?? '')) guardExit()
  const code = await program(words)
  // Commands may leave workers that are kept warm, or timers: those must not keep the program alive. What was written
  // to a pipe must have left it first.
  await Promise.all([written(process.stdout), written(process.stderr)])
  process.exit(code)
} else {
  process.stderr.write(
    `manyworlds: Node ${ownPackage.oldestNode} or newer is needed, this is ${process.version} [NODE_TOO_OLD]\n`,
  )
  process.exitCode = 1
}

/** `manyworlds runs | head -1` closes our stdout early, which is no error; a full disk behind it is one. */
function leave(error: NodeJS.ErrnoException): void {
  if (error.code === 'EPIPE') process.exit(NOBODY_READS)
  process.stderr.write(`manyworlds: what was to be printed could not be written: ${error.message}\n`)
  process.exit(1)
}

function written(stream: NodeJS.WriteStream): Promise<void> {
  return new Promise((done) => stream.write('', () => done()))
}

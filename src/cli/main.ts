#!/usr/bin/env node
import { guardExit } from '../guard-exit.ts'
import { isAtLeast } from '../is-at-least.ts'
import { ownPackage } from '../own-package.ts'

/** 128 + SIGPIPE, as shells report it. */
const SIGPIPE_EXIT = 141

const words = process.argv.slice(2)
for (const stream of [process.stdout, process.stderr]) stream.on('error', leave)

// `doctor` must also run on an old Node, because it reports that. Imports come after this check, because those of the
// other commands fail on an old Node with a confusing error.
if (isAtLeast(process.versions.node, ownPackage.oldestNode) || words[0] === 'doctor') {
  const { program } = await import('./program.ts')
  // Other programs wait for these commands to end, such as a scheduler or a script.
  if (['node', 'run', 'train', 'rollout-server'].includes(words[0] ?? '')) guardExit()
  const code = await program(words)
  // Exit explicitly, because warm workers and timers would keep the process alive. Flush pipes first.
  await Promise.all([written(process.stdout), written(process.stderr)])
  process.exit(code)
} else {
  process.stderr.write(
    `manyworlds: Node ${ownPackage.oldestNode} or newer is needed, this is ${process.version} [NODE_TOO_OLD]\n`,
  )
  process.exitCode = 1
}

/**
 * `manyworlds runs | head -1` closes stdout early, which is not an error. A full disk is an error. Runs and trainings continue without
 * a pipe's reader or a closed terminal: their results are in the store.
 */
function leave(error: NodeJS.ErrnoException): void {
  if ((error.code === 'EPIPE' || error.code === 'EIO') && ['run', 'train'].includes(words[0] ?? '')) return
  if (error.code === 'EPIPE') process.exit(SIGPIPE_EXIT)
  process.stderr.write(`manyworlds: cannot write the output: ${error.message}\n`)
  process.exit(1)
}

function written(stream: NodeJS.WriteStream): Promise<void> {
  return new Promise((done) => stream.write('', () => done()))
}

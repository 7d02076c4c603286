import { DRIVER_UNREACHABLE, type Unreachable } from '../../host/slot-instructions.ts'
import { ownPackage } from '../../own-package.ts'
import { firstLine } from '../../text/escape-controls.ts'
import { NODE_NOT_FOUND } from './launcher.ts'
import { NODE_TOO_OLD } from './slot-program.ts'

/** Why slots cannot start, and what to do about it. */
export interface Cure {
  readonly code: 'SPARK_UNREACHABLE' | 'SPARK_FAILED'
  readonly text: string
}

/** `words`: Spark's complete error of a failed operation, including the slot's output. */
export function adviceFor(words: string): Cure | undefined {
  const noNode = new RegExp(`${NODE_NOT_FOUND} (\\S+) ([^\\n]+)`).exec(words)
  if (noNode)
    return {
      code: 'SPARK_FAILED',
      text: `there is no Node on the executor host ${noNode[1]} ('${noNode[2]!.trim()}' is not on the PATH there): install Node ${ownPackage.oldestNode} or newer on the hosts of the executors, or give its path as spark.nodeBinary`,
    }
  const tooOld = jsonAfter<{ host: string; node: string }>(NODE_TOO_OLD, words)
  if (tooOld)
    return {
      code: 'SPARK_FAILED',
      text: `the executor host ${tooOld.host} has Node ${tooOld.node}, and ${ownPackage.oldestNode} or newer is needed: install it there, or give its path as spark.nodeBinary`,
    }
  const unreachable = jsonAfter<Unreachable>(DRIVER_UNREACHABLE, words)
  if (unreachable)
    return {
      code: 'SPARK_UNREACHABLE',
      text: `the executor host ${unreachable.from} cannot reach this process at ${unreachable.tried} (${unreachable.why}): ${ADVICE}`,
    }
  if (/TRANSFORM/i.test(words) && /not supported|unsupported|not allowed/i.test(words))
    return {
      code: 'SPARK_FAILED',
      text: 'this Spark does not allow SELECT TRANSFORM, which starts the slots; ask its administrator',
    }
  return undefined
}

/** The fallback if no advice matches. */
export function whatFailed(message: string): string {
  const status = /Subprocess exited with status (\d+)/.exec(message)?.[1]
  if (status === '137') return 'Spark gave up a slot: its host was killed repeatedly (SIGKILL; too little memory?)'
  return `Spark gave up slots: ${message.split('\n', 1)[0]!.slice(0, 500)}`
}

/** For slots that exited with code 0 without having called the driver. */
export function endedAtOnce(node: string, printed: string): string {
  const said = firstLine(printed).slice(0, 200)
  return `what Spark runs for a slot ends at once with exit code 0, and does not call: '${node}' is not Node, or a wrapper that does not start it${said === '' ? '' : ` (it printed: ${said})`}; give the path of Node on the executors as spark.nodeBinary`
}

export const ADVICE =
  'set spark.advertiseHost to the name or address under which executors reach this machine; if there is a firewall, set spark.port to a port that it lets through'

/** Parses the JSON object that follows a word on the same line. */
function jsonAfter<T>(word: string, words: string): T | undefined {
  const from = words.indexOf(`${word} {`)
  if (from < 0) return undefined
  const line = words.slice(from + word.length + 1, from + MAX_WORDS_CHARS).split('\n', 1)[0]!
  try {
    return JSON.parse(line.slice(0, line.lastIndexOf('}') + 1)) as T
  } catch {
    return undefined
  }
}

const MAX_WORDS_CHARS = 10_000

import { writeSync } from 'node:fs'
import { type InspectorNotification, Session } from 'node:inspector'
import { Socket } from 'node:net'
import { parentPort, workerData } from 'node:worker_threads'
import { BLAME, endWorker, SHARED, WATCHING } from './watchdog-contract.ts'

/**
 * A thread beside the user's event loop, for what a blocked event loop cannot do itself:
 * - it sends a heartbeat on fd 4, with the number of tasks, so that the parent process knows that the worker lives;
 * - it ends the process and all its children when fd 4 closes, because then the driver or host is gone;
 * - it ends a process whose event loop is blocked past a task's deadline, and reports the blocking task on fd 4.
 */
const HEARTBEAT_MS = 1000
const CHECK_MS = 100
/** If the event loop has not noticed a deadline after this time, it is blocked. */
const BLOCKED_GRACE_MS = 300
/** If the inspector cannot pause the event loop in this time (a native call), no task is named. */
const INSPECT_MS = 1000
const STACK_LINES = 8
/** Function and file names are the user's and may be very long; the reader accepts 64 KB in all. */
const LINE_CHARS = 1000

/** What the watchdog reports before it ends its process. */
export interface LastWords {
  readonly blocked: true
  /** The task whose code blocked the event loop; undefined if unknown. */
  readonly lease: number | undefined
  /** How long it has run. */
  readonly runMs?: number
  readonly stack: string
}

interface Blamed {
  readonly lease: number
  readonly deadline: number | null
  readonly runMs: number
}

const { shared: memory, fd, owner } = workerData as { shared: Float64Array; fd: number; owner: string | undefined }
const end = () => endWorker(owner)
watch(memory)

function watch(shared: Float64Array): void {
  const socket = new Socket({ fd, readable: true, writable: true })
  socket.on('error', end)
  socket.on('close', end)
  socket.resume()
  parentPort!.postMessage(WATCHING)
  setInterval(() => socket.write(`${shared[SHARED.tasks]}.`), HEARTBEAT_MS)
  // If the blocking task's own deadline is later, wait until then.
  let leftAlone = { deadline: 0, until: 0 }
  let inspecting = false
  setInterval(() => {
    const deadline = shared[SHARED.deadline]!
    const now = Date.now()
    if (inspecting || now < deadline + BLOCKED_GRACE_MS || (deadline === leftAlone.deadline && now < leftAlone.until))
      return
    inspecting = true
    findBlocker((blamed, stack, isKnown) => {
      inspecting = false
      // The event loop may have recovered meanwhile.
      if (shared[SHARED.deadline] !== deadline) return
      if (blamed !== undefined) {
        const due = blamed.deadline === null ? Number.POSITIVE_INFINITY : blamed.deadline + BLOCKED_GRACE_MS
        if (Date.now() < due) {
          leftAlone = { deadline, until: due }
          return
        }
      }
      // Somebody is in a native call. If no running task is known to be late, it may be one that has time left.
      if (!isKnown && shared[SHARED.isLive] !== 1 && Date.now() < shared[SHARED.latest]! + BLOCKED_GRACE_MS) {
        leftAlone = { deadline, until: shared[SHARED.latest]! + BLOCKED_GRACE_MS }
        return
      }
      const words: LastWords = { blocked: true, lease: blamed?.lease, ...(blamed && { runMs: blamed.runMs }), stack }
      try {
        writeSync(fd, `!${JSON.stringify(words)}\n`)
      } catch {
        // The other end is gone; end the process anyway.
      }
      end()
    })
  }, CHECK_MS)
}

/** Pauses the event loop with the debugger and evaluates whose code is running. `isKnown`: it could be paused. */
function findBlocker(done: (blamed: Blamed | undefined, stack: string, isKnown: boolean) => void): void {
  const session = new Session()
  let finished = false
  const finish = (blamed: Blamed | undefined, stack: string, isKnown: boolean) => {
    if (finished) return
    finished = true
    clearTimeout(timer)
    session.disconnect()
    done(blamed, stack, isKnown)
  }
  const timer = setTimeout(finish, INSPECT_MS, undefined, '', false)
  const scripts = new Map<string, string>()
  session.connectToMainThread()
  session.on('inspectorNotification', (message: InspectorNotification<object>) => {
    if (message.method === 'Debugger.scriptParsed') {
      const { scriptId, url } = message.params as { scriptId: string; url: string }
      scripts.set(scriptId, url)
    }
    if (message.method !== 'Debugger.paused' || finished) return
    const { callFrames } = message.params as { callFrames: CallFrame[] }
    const stack = callFrames
      .slice(0, STACK_LINES)
      .map(({ functionName, location }) => {
        const url = (scripts.get(location.scriptId) ?? '?').slice(-LINE_CHARS)
        const where = `${url}:${location.lineNumber + 1}:${(location.columnNumber ?? 0) + 1}`
        const name = functionName.slice(0, LINE_CHARS)
        return name === '' ? `    at ${where}` : `    at ${name} (${where})`
      })
      .join('\n')
    const expression = `globalThis[Symbol.for('${BLAME}')]()`
    const callFrameId = callFrames[0]!.callFrameId
    session.post('Debugger.evaluateOnCallFrame', { callFrameId, expression, returnByValue: true }, (error, reply) => {
      const text = (reply as { result?: { value?: unknown } } | undefined)?.result?.value
      const blamed = error === null && typeof text === 'string' ? (JSON.parse(text) as Blamed | null) : null
      if (finished) return
      session.post('Debugger.resume', () => finish(blamed ?? undefined, stack, true))
    })
  })
  // A native call may end only after this gave up.
  session.post('Debugger.enable', () => finished || session.post('Debugger.pause'))
}

interface CallFrame {
  readonly callFrameId: string
  readonly functionName: string
  readonly location: { readonly scriptId: string; readonly lineNumber: number; readonly columnNumber?: number }
}

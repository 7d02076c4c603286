import { Socket } from 'node:net'
import { parentPort, workerData } from 'node:worker_threads'
import { framedWire } from '../engines/frames.ts'
import { Channel, type Wire } from '../protocol/channel.ts'
import { checkDriverMessage } from '../protocol/check-messages.ts'
import type { DriverMessage, WorkerMessage } from '../protocol/messages.ts'
import { splitWire } from '../protocol/split-wire.ts'
import type { FromSide, SideData, ToSide } from './side.ts'

/** A thread beside the event loop of a worker that asks the driver on behalf of tasks, also while they block the loop. */
const { fd, codec } = workerData as SideData
const port = parentPort!
const say = (message: FromSide) => port.postMessage(message)

/** Requests of the event loop have even numbers. */
let next = 1
const open = new Map<number, { lease: number; call: number; flag: Int32Array }>()
let onLoopFrame = (_: Uint8Array) => {}

const throughTheLoop: Wire = {
  send(frame) {
    say({ type: 'frame', frame })
    return true
  },
  onDrain: () => {},
  onFrame: (listener) => {
    onLoopFrame = listener
  },
}

function ownWire(fd: number): Wire {
  const socket = new Socket({ fd, readable: true, writable: true })
  // The loop has a wire of its own, by which it hears that the driver is gone.
  socket.on('error', () => {})
  const { main, side } = splitWire(framedWire(socket))
  main.onFrame(() => {})
  return side
}

const channel = new Channel<WorkerMessage, DriverMessage>(
  fd === undefined ? throughTheLoop : ownWire(fd),
  checkDriverMessage,
  (message) => {
    if (message.type !== 'answer' || !message.last) return
    const asked = open.get(message.request)
    if (!asked) return
    open.delete(message.request)
    say({ type: 'answer', call: asked.call, ok: message.ok, value: message.value })
    Atomics.store(asked.flag, 0, 1)
    Atomics.notify(asked.flag, 0)
  },
  (error) => say({ type: 'broken', message: error.message }),
)
channel.speak(codec)

port.on('message', (message: ToSide) => {
  switch (message.type) {
    case 'frame':
      return onLoopFrame(message.frame)
    case 'forget':
      for (const [request, { lease }] of open) if (lease === message.lease) open.delete(request)
      return
    case 'ask': {
      const { call, lease, service, body, size, flag } = message
      const request = next
      next += 2
      open.set(request, { lease, call, flag })
      channel.post(
        { type: 'ask', request, lease, service, kind: 'one', slot: 'keep', clock: 'runs', body },
        size,
        lease,
      )
      return
    }
    default:
      message satisfies never
  }
})

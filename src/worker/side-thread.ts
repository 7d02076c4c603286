import { Socket } from 'node:net'
import { parentPort, workerData } from 'node:worker_threads'
import { framedWire } from '../engines/frames.ts'
import { Channel, type Wire } from '../protocol/channel.ts'
import { checkDriverMessage } from '../protocol/check-messages.ts'
import { type DriverMessage, MAX_OPEN_REQUESTS, type WorkerMessage } from '../protocol/messages.ts'
import { splitWire } from '../protocol/split-wire.ts'
import type { FromSide, SideData, ToSide } from './side.ts'

/** A worker thread that makes requests on behalf of tasks, also while a task blocks the event loop. */
const { fd, codec } = workerData as SideData
const port = parentPort!
const say = (message: FromSide) => port.postMessage(message)

type ToAsk = Extract<ToSide, { type: 'ask' }>

/** The requests of one task. */
interface TaskAsks {
  readonly open: Map<number, ToAsk>
  /** Requests beyond the limit wait here. */
  readonly waiting: ToAsk[]
}

/** Requests of the event loop have even numbers. */
let next = 1
const byLease = new Map<number, TaskAsks>()
const leaseOf = new Map<number, number>()
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
  // The main thread notices on its own connection that the driver is gone.
  socket.on('error', () => {})
  const { main, side } = splitWire(framedWire(socket))
  main.onFrame(() => {})
  return side
}

const channel = new Channel<WorkerMessage, DriverMessage>(
  fd === undefined ? throughTheLoop : ownWire(fd),
  checkDriverMessage,
  (message) => {
    if (message.type === 'answer' && message.last) onAnswer(message)
  },
  (error) => {
    say({ type: 'broken', message: error.message })
    // Wakes up a task that blocks the event loop for its answer; it gets the error.
    for (const { open, waiting } of byLease.values()) for (const { flag } of [...open.values(), ...waiting]) wake(flag)
  },
)
channel.speak(codec)

function ask(asked: ToAsk): void {
  const { lease } = asked
  let asks = byLease.get(lease)
  if (asks === undefined) byLease.set(lease, (asks = { open: new Map(), waiting: [] }))
  if (asks.open.size < MAX_OPEN_REQUESTS) send(asked, asks)
  else asks.waiting.push(asked)
}

function send(asked: ToAsk, asks: TaskAsks): void {
  const { lease, service, body, size } = asked
  const request = next
  next += 2
  asks.open.set(request, asked)
  leaseOf.set(request, lease)
  channel.post({ type: 'ask', request, lease, service, kind: 'one', slot: 'keep', clock: 'runs', body }, size, lease)
}

function onAnswer({ request, ok, value }: Extract<DriverMessage, { type: 'answer' }>): void {
  const asks = byLease.get(leaseOf.get(request) ?? 0)
  const asked = asks?.open.get(request)
  if (!asks || !asked) return
  asks.open.delete(request)
  leaseOf.delete(request)
  say({ type: 'answer', call: asked.call, ok, value })
  wake(asked.flag)
  const waiting = asks.waiting.shift()
  if (waiting) send(waiting, asks)
  else if (asks.open.size === 0) byLease.delete(asked.lease)
}

function wake(flag: Int32Array): void {
  Atomics.store(flag, 0, 1)
  Atomics.notify(flag, 0)
}

function end(lease: number): void {
  for (const request of byLease.get(lease)?.open.keys() ?? []) leaseOf.delete(request)
  byLease.delete(lease)
}

port.on('message', (message: ToSide) => {
  switch (message.type) {
    case 'frame':
      return onLoopFrame(message.frame)
    case 'end':
      return end(message.lease)
    case 'ask':
      return ask(message)
    default:
      message satisfies never
  }
})

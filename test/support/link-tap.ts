import { decode } from '../../dist/protocol/codec.js'
import type { EngineEvents, RuntimeEngine, WorkerExit, WorkerLink } from '../../src/engines/engine.ts'
import { BLOBS, type DriverMessage, type WorkerMessage } from '../../src/protocol/messages.ts'
import { KIND } from '../../src/protocol/raw-frames.ts'

/** A worker as its frames show it, whatever the driver makes of them. */
export interface TappedWorker {
  /** The engine may not know it; the first message has it. */
  pid: number | undefined
  /** The driver asked the engine to end it. */
  ended: boolean
  /** The ids of tasks that it was given, by lease. A large answer is not read: its lease stays. */
  readonly held: Map<number, string>
  /** Leases whose task may have begun for all that the driver can know: the worker said so, or the driver sent `go`. */
  readonly begun: Set<number>
}

interface Hooks {
  opened(worker: TappedWorker): void
  /** Called before the driver learns that the worker is gone. Every frame of the worker was read. */
  closed(worker: TappedWorker, exit: WorkerExit): void
}

/** Reads the frames of all workers of an engine, each before the driver reads or the engine sends it. */
export function tapEngine(engine: RuntimeEngine, hooks: Hooks): RuntimeEngine {
  const taps = new Map<WorkerLink, WorkerLink>()
  return overlay(engine, {
    start: (placement, events, signal) => {
      const tapped: EngineEvents = {
        ...events,
        link: (link) => {
          const tap = tapLink(link, hooks)
          taps.set(link, tap)
          void link.closed.then(() => taps.delete(link))
          events.link(tap)
        },
        retire: (link, reason) => events.retire(taps.get(link) ?? link, reason),
      }
      return engine.start(placement, tapped, signal)
    },
  })
}

function tapLink(link: WorkerLink, hooks: Hooks): WorkerLink {
  const worker: TappedWorker = { pid: link.info.pid, ended: false, held: new Map(), begun: new Set() }
  hooks.opened(worker)
  // Before the driver's own listener, which is called after this one.
  void link.closed.then((exit) => hooks.closed(worker, exit))
  return overlay(link, {
    send: (frame) => {
      for (const message of messagesOf<DriverMessage>(frame)) onSent(worker, message)
      return link.send(frame)
    },
    onFrame: (listener) =>
      link.onFrame((frame) => {
        for (const message of messagesOf<WorkerMessage>(frame)) onReceived(worker, message)
        listener(frame)
      }),
    kill: () => {
      worker.ended = true
      link.kill()
    },
  })
}

function onSent({ held, begun }: TappedWorker, message: DriverMessage): void {
  if (message.type === 'run') for (const [lease, , id] of message.tasks) held.set(lease, String(id))
  else if (message.type === 'go') begun.add(message.lease)
}

function onReceived(worker: TappedWorker, message: WorkerMessage): void {
  const { held, begun } = worker
  switch (message.type) {
    case 'ready':
      worker.pid = message.pid
      return
    case 'started':
      for (const lease of message.leases) begun.add(lease)
      return
    case 'running':
      for (const [lease] of message.tasks) begun.add(lease)
      return
    case 'ask':
      // An agent's `setup` asks for blobs under the lease of a task that has not started.
      if (message.service !== BLOBS) begun.add(message.lease)
      return
    case 'done':
      for (const [lease] of message.records) begun.add(lease)
      for (const [lease] of message.outcomes) held.delete(lease)
      return
    case 'returned':
    case 'retire':
      for (const lease of message.unstarted) held.delete(lease)
  }
}

/** None for a fragment: only large answers are sent in fragments here. */
function messagesOf<Message>(frame: Uint8Array): Message[] {
  const inner = frame[0] === KIND.side ? frame.subarray(1) : frame
  if (inner[0] === KIND.fragment || inner[0] === KIND.credit) return []
  return decode(inner) as Message[]
}

/** The object with some methods replaced; the others are called on the object itself, which may have private fields. */
function overlay<T extends object>(target: T, replaced: Partial<T>): T {
  return new Proxy(target, {
    get(_, key) {
      if (key in replaced) return replaced[key as keyof T]
      const value: unknown = Reflect.get(target, key, target)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
}

import type { AgentRef, RunnableDefinition } from '../agent.ts'
import type { ManyworldsError } from '../errors.ts'
import { Channel, type Wire } from '../protocol/channel.ts'
import { checkDriverMessage } from '../protocol/check-messages.ts'
import { CODECS } from '../protocol/codec.ts'
import {
  type BundlePlace,
  type DriverMessage,
  OUTCOME,
  PROTOCOL_VERSION,
  type WorkerMessage,
} from '../protocol/messages.ts'
import { unpack } from '../protocol/pack.ts'
import { splitWire } from '../protocol/split-wire.ts'
import { errorItem } from './error-item.ts'
import { LoadError } from './load-error.ts'
import { SideThread } from './side.ts'
import { TaskRunner } from './task-runner.ts'
import { Timeouts } from './timeouts.ts'

/** What differs between a worker in a process of its own and one in the driver's process. */
export interface WorkerHost {
  /** Carries frames to the driver and from it. */
  readonly wire: Wire
  /** The side thread's own file descriptor. Undefined: its frames use the same wire. */
  readonly sideFd: number | undefined
  /** The nearest deadline and the number of running tasks, for a watchdog thread if there is one. */
  readonly shared: Float64Array
  /** Aborted when the worker ends. */
  readonly leaving: AbortSignal
  /** Where the engine puts blobs, if it delivers them. */
  readonly blobFolder: string | undefined
  /** Finds the code of an agent. */
  load(ref: AgentRef, entry: string | undefined, bundle: BundlePlace | undefined): Promise<RunnableDefinition>
  /** The driver and this worker do not understand each other. */
  broken(error: ManyworldsError | undefined): void
}

export interface ServedDriver {
  readonly runner: TaskRunner
  readonly channel: Channel<WorkerMessage, DriverMessage>
  /** Sends `ready`, the first message. */
  ready(): void
}

/** The worker's end of the conversation with a driver: runs the tasks that the driver sends. */
export function serveDriver(around: WorkerHost): ServedDriver {
  const wires = splitWire(around.wire)
  const channel = new Channel<WorkerMessage, DriverMessage>(wires.main, checkDriverMessage, receive, around.broken)
  const runner: TaskRunner = new TaskRunner(
    channel,
    (self) =>
      new Timeouts(self.live, around.shared, (task, ms) =>
        self.endings.abandon(task, OUTCOME.timeout, 'TASK_TIMEOUT', `the task did not end within ${ms} ms`),
      ),
    around.leaving,
    new SideThread(around.sideFd, wires.side, (why) => runner.recycling.retire(`its side thread has failed: ${why}`)),
    around.blobFolder,
  )

  /** An error of ours: the driver may wait for what this message asked for, so the connection ends with the reason. */
  function receive(message: DriverMessage): void {
    try {
      handle(message)
    } catch (error) {
      channel.refuse(`'${message.type}' of the driver`, error)
    }
  }

  function handle(message: DriverMessage): void {
    switch (message.type) {
      case 'hello':
        if (message.protocol !== PROTOCOL_VERSION || !CODECS.includes(message.codec)) return around.broken(undefined)
        channel.speak(message.codec)
        runner.side.speak(message.codec)
        return runner.configure(message.settings)
      case 'agent':
        void load(message)
        return
      case 'profile':
        runner.profiles.set(message.key, message.profile)
        return
      case 'forget':
        for (const key of message.profiles) runner.profiles.delete(key)
        return
      case 'run':
        return runner.take(message.tasks, message.careful)
      case 'recall':
        return runner.recall()
      case 'go':
        return runner.go(message.lease)
      case 'cancel':
        return runner.cancel(message.lease, message.reason)
      case 'ping':
        return channel.control({ type: 'pong' })
      case 'stored':
        return runner.outbox.stored(message.bytes)
      case 'answer':
        return runner.requests.onAnswer(message)
      case 'clock':
        return runner.requests.onClock(message.request, message.stands)
      case 'yours':
        return runner.requests.onYours(message.request)
      default:
        message satisfies never
    }
  }

  async function load({ key, ref, params, entry, bundle }: Extract<DriverMessage, { type: 'agent' }>): Promise<void> {
    const agent = runner.agents.get(key)
    agent.params = unpack(params)
    runner.agents.prepares(1)
    try {
      agent.definition = await around.load(ref, entry, bundle)
    } catch (error) {
      const code = error instanceof LoadError ? error.code : 'AGENT_LOAD_FAILED'
      const { message, stack } = errorItem('SETUP_FAILED', error)
      channel.control({ type: 'load-failed', agent: key, code, message, stack })
      return
    } finally {
      runner.agents.prepares(-1)
    }
    channel.control({ type: 'loaded', agent: key })
    runner.agents.ready(agent)
  }

  return {
    runner,
    channel,
    ready: () =>
      channel.control({
        ...{ type: 'ready', protocol: PROTOCOL_VERSION, codecs: CODECS },
        ...{ node: process.version, pid: process.pid },
      }),
  }
}

import { packBundle } from '../../network/blob.ts'
import { newSessionId } from '../../network/handshake.ts'
import { type DriverToHost, type HostInfo, type HostToDriver, parseHostMessage } from '../../network/host-messages.ts'
import { LEASE_MS, MARGIN_MS } from '../../network/limits.ts'
import { Mux } from '../../network/mux.ts'
import type { Peer } from '../../network/peer.ts'
import { haveEnded } from '../../network/same-machine.ts'
import { KIND, Session } from '../../network/session.ts'
import { type Reason, reasonOf } from '../../text/reason.ts'
import type { CodeBundle, WorkerLink } from '../engine.ts'
import { LineLimit } from '../line-limit.ts'
import { BlobDelivery } from './blob-delivery.ts'
import { RemoteLink } from './remote-link.ts'

const BUNDLE_STREAM = 0
/** More workers than any machine runs: a node's own figures are not trusted. */
const MOST_WORKERS = 4096
/** The last frames of a worker that has ended may arrive after its successor has started. */
const REPLACEMENTS = 16

export interface NodeHooks {
  /** The node has introduced itself. */
  here(node: RemoteNode, info: HostInfo): void
  link(link: WorkerLink): void
  retire(link: WorkerLink, reason: string): void
  /** Its capacity has changed: it cannot start workers, or accepts no more. */
  changed(node: RemoteNode): void
  notice(line: string): void
  /** Another driver could use its workers. */
  othersWait(node: RemoteNode): void
  output(worker: string, lines: string): void
  /** Its last worker has ended. */
  emptied(node: RemoteNode): void
  /** It is gone with its workers. */
  gone(node: RemoteNode, reason: Reason): void
}

/** How many checks (one per beat) a node may take for a cheap answer. */
const ANSWER_LOOKS = 10
/** Slow transfers get more time: at least this many bytes are expected between two checks. */
const SLOW_BYTES = 50 * 1024

interface Delivery {
  readonly bundle: CodeBundle
  readonly done: Promise<void>
  sent: boolean
  resolve(): void
  reject(error: Error): void
}

/** A host at the other end of a session, whichever side made the connection. */
export class RemoteNode {
  readonly session: Session
  /** Its name in messages. */
  name: string
  info: HostInfo | undefined
  /** It has received the code and may run workers. */
  usable = false
  /** Why it cannot start workers. */
  broken: Reason | undefined
  draining = false
  readonly blobs: BlobDelivery
  readonly #hooks: NodeHooks
  readonly #mux: Mux
  readonly #printed = new LineLimit((lines) =>
    this.#hooks.notice(`node ${this.name} printed too much: ${lines} lines were left out`),
  )
  readonly #links = new Map<number, RemoteLink>()
  readonly #deliveries = new Map<string, Delivery>()
  /** Unanswered requests, and how many checks are left for each. */
  readonly #owed = new Map<string, { readonly what: string; looks: number }>()
  #wanted = 0
  /** The most workers ever requested from it. */
  #mostWanted = 0
  #peer: Peer | undefined
  #alive = true

  constructor(name: string, hooks: NodeHooks, sessionId: string = newSessionId()) {
    this.name = name
    this.#hooks = hooks
    const terms = { lostMs: LEASE_MS + MARGIN_MS, lends: true }
    this.session = new Session(sessionId, terms, {
      message: (kind, bytes) => this.#onMessage(kind, bytes),
      drained: () => this.#mux.pump(),
      isGone: () => this.info !== undefined && haveEnded(this.info, this.#pids),
      altered: (line) => this.#notice(`node ${this.name}: ${line}`),
      abandoned: (reason) =>
        hooks.notice(`node ${this.name}: ${reason}; its tasks run on other nodes when it must have ended them`),
      ended: (reason) => this.#onEnded(reason),
    })
    this.#mux = new Mux(this.session)
    this.#mux.open(BUNDLE_STREAM, { frame: () => true, drained: () => {}, credit: Number.POSITIVE_INFINITY })
    this.blobs = new BlobDelivery(this.#mux, {
      say: (message) => this.say(message),
      owes: (what, bytes) => this.#owed.set('blob', { what, looks: looksFor(bytes) }),
      paid: () => void this.#owed.delete('blob'),
      refuse: (what) => this.session.refuse(what),
    })
  }

  /** How many workers it can run. */
  get capacity(): number {
    return this.usable && !this.draining && this.broken === undefined
      ? Math.min(this.info?.workers ?? 0, MOST_WORKERS)
      : 0
  }

  get wasConnected(): boolean {
    return this.#peer !== undefined
  }

  /** Why it has no workers although it is connected, or was a moment ago. */
  get unusable(): Reason {
    if (this.broken !== undefined) return this.broken
    const { whyAbandoned, attached } = this.session
    if (whyAbandoned !== undefined)
      return reasonOf(`${whyAbandoned}; it is called again when its lease must have ended`, 'it was given up')
    if (!attached) return reasonOf('', 'its connection broke and was not made again')
    if (this.info === undefined) return reasonOf('', 'it is connected and has not introduced itself')
    if (this.draining) return reasonOf('', 'it is going away')
    return reasonOf('', 'it is connected and has not received all of its code')
  }

  /** How many workers were requested from it. */
  get wanted(): number {
    return this.#wanted
  }

  /** How many workers it has. */
  get workers(): number {
    return this.#links.size
  }

  get #pids(): readonly number[] {
    return [...this.#links.values()].flatMap(({ info }) => info.pid ?? [])
  }

  hasLabels(labels: readonly string[]): boolean {
    return labels.every((label) => this.info?.labels.includes(label))
  }

  attach(peer: Peer, received: number): void {
    this.#peer = peer
    peer.keepAlive(this.#alive)
    this.session.attach(peer, received)
  }

  /** To be called every BEAT_MS. A connected node that does not answer requests counts as lost. */
  beat(): void {
    this.session.beat()
    // No answer can be expected while the connection is silent.
    if (this.session.connectedForMs === 0) return
    for (const owed of this.#owed.values()) if (owed.looks-- === 0) return this.session.refuse(`no ${owed.what}`)
  }

  keepAlive(alive: boolean): void {
    this.#alive = alive
    this.#peer?.keepAlive(alive)
  }

  /** Sends it code, once. */
  async publish(bundle: CodeBundle): Promise<void> {
    let delivery = this.#deliveries.get(bundle.sha256)
    if (delivery === undefined) {
      const { promise: done, resolve, reject } = Promise.withResolvers<void>()
      delivery = { bundle, done, sent: false, resolve, reject }
      done.catch(() => {})
      this.#deliveries.set(bundle.sha256, delivery)
      this.#owed.set(bundle.sha256, { what: 'answer to an offer of code', looks: ANSWER_LOOKS })
      this.say({ type: 'offer', sha256: bundle.sha256, bytes: packBundle(bundle).byteLength })
    }
    await delivery.done
  }

  /** Requests this number of workers. */
  want(workers: number): void {
    if (workers === this.#wanted) return
    this.#wanted = workers
    this.#mostWanted = Math.max(this.#mostWanted, workers)
    this.say({ type: 'workers', workers })
  }

  /** Marks it as unusable, for this reason. */
  breaks(reason: string): void {
    this.broken = reasonOf(reason, 'it cannot be used, and did not say why')
    this.#hooks.changed(this)
  }

  /** Its workers are not needed now: they finish their tasks. */
  giveBack(reason: string): void {
    this.want(0)
    for (const link of this.#links.values()) this.#hooks.retire(link, reason)
  }

  say(message: DriverToHost): void {
    this.#mux.control(message)
  }

  /** Says goodbye and waits until its workers are gone, up to a limit. */
  async leave(withinMs: number): Promise<void> {
    if (this.session.over) return
    const { attached } = this.session
    this.say({ type: 'bye' })
    if (attached)
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, withinMs)
        void this.session.untilDetached().then(() => {
          clearTimeout(timer)
          resolve()
        })
      })
    this.session.end('the driver is done')
  }

  #onMessage(kind: number, bytes: Buffer): void {
    if (kind === KIND.data) {
      const wrong = this.#mux.onData(bytes)
      if (wrong !== undefined) this.session.refuse(wrong)
      return
    }
    const message = parseHostMessage(bytes)
    if (message === undefined) return this.session.refuse('a malformed message')
    this.#on(message)
  }

  #on(message: HostToDriver): void {
    switch (message.type) {
      case 'host':
        // A second introduction would make the driver send code and request workers again.
        if (this.info !== undefined) return this.session.refuse('a second introduction')
        this.info = message.info
        this.session.lostMs = message.info.leaseMs + MARGIN_MS
        return this.#hooks.here(this, message.info)
      case 'started':
        return this.#onStarted(message)
      case 'ended': {
        const { code, signal, reason, lastWords, stderr } = message.exit
        this.#links.get(message.worker)?.ended({
          ...{ code, signal },
          ...(reason === undefined ? {} : { reason }),
          ...(lastWords === undefined ? {} : { lastWords }),
          ...(stderr === undefined ? {} : { stderr }),
        })
        this.#links.delete(message.worker)
        this.#owed.delete(`${message.worker}`)
        if (this.#links.size === 0) this.#hooks.emptied(this)
        return
      }
      case 'failed':
        return this.breaks(message.reason)
      case 'have':
        this.#owed.delete(message.sha256)
        return this.#deliveries.get(message.sha256)?.resolve()
      case 'send':
        return this.#deliver(message.sha256)
      case 'refuse':
        this.#owed.delete(message.sha256)
        return this.#deliveries
          .get(message.sha256)
          ?.reject(new Error(`node ${this.name} refused the code: ${message.reason}`))
      case 'blob-have':
      case 'blob-send':
      case 'blob-refuse':
        return this.blobs.on(message)
      case 'drain':
        this.draining = true
        for (const link of this.#links.values()) this.#hooks.retire(link, message.reason)
        this.#notice(`node ${this.name} is going away (${message.reason}); it gets no new tasks`)
        return this.#hooks.changed(this)
      case 'output':
        if (this.#printed.allows(message.text)) this.#hooks.output(`${this.name}/${message.place}`, message.text)
        return
      case 'others-wait':
        return this.#hooks.othersWait(this)
      case 'notice':
        return this.#notice(`node ${this.name}: ${message.line}`)
      case 'credit':
        return this.#mux.onCredit(message.worker, message.bytes)
      case 'bye':
        return this.session.end(message.reason)
      default:
        message satisfies never
    }
  }

  #notice(line: string): void {
    if (this.#printed.allows(line)) this.#hooks.notice(line)
  }

  #deliver(sha256: string): void {
    const delivery = this.#deliveries.get(sha256)
    if (delivery === undefined || delivery.sent) return this.session.refuse('a request for code that was never offered')
    delivery.sent = true
    const packed = packBundle(delivery.bundle)
    this.#owed.set(sha256, { what: 'word about code that it was sent', looks: looksFor(packed.byteLength) })
    this.#mux.send(BUNDLE_STREAM, packed)
  }

  #onStarted({ worker, place, pid }: Extract<HostToDriver, { type: 'started' }>): void {
    if (this.#links.has(worker) || this.info === undefined)
      return this.session.refuse('a worker id that is already in use')
    if (this.#mostWanted === 0 || this.#links.size >= 2 * this.#mostWanted + REPLACEMENTS)
      return this.session.refuse(`more workers than requested (${this.#mostWanted})`)
    const { host, labels } = this.info
    const info = { host, labels, place: this.name, ...(pid === undefined ? {} : { pid }) }
    const hooks = { onKill: () => this.#onKill(worker), connectedForMs: () => this.session.connectedForMs }
    const link = new RemoteLink(this.#mux, worker, `${this.name}/${place}`, info, hooks)
    this.#links.set(worker, link)
    this.#hooks.link(link)
    if (this.draining) this.#hooks.retire(link, 'the node is going away')
  }

  #onKill(worker: number): void {
    // A disconnected machine gets the kill when it is back; don't wait for that.
    if (!this.session.attached) this.#links.get(worker)?.ended({ code: null, signal: 'SIGKILL' })
    else if (this.#links.has(worker)) this.#owed.set(`${worker}`, { what: 'end of a worker', looks: ANSWER_LOOKS })
  }

  #onEnded(why: string): void {
    const reason = reasonOf(why, 'it did not say why')
    const links = [...this.#links.values()]
    this.#links.clear()
    this.usable = false
    for (const link of links)
      link.ended({ code: null, signal: null, reason: `node ${this.name} was lost: ${reason}`, placeLost: true })
    for (const delivery of this.#deliveries.values())
      delivery.reject(new Error(`node ${this.name} was lost: ${reason}`))
    this.blobs.end(new Error(`node ${this.name} was lost: ${reason}`))
    this.#hooks.gone(this, reason)
  }
}

const looksFor = (bytes: number) => ANSWER_LOOKS + Math.ceil(bytes / SLOW_BYTES)

import { pathToFileURL } from 'node:url'
import type { AgentRef } from '../agent.ts'
import type { Bundle, BundleOptions } from '../bundle/index.ts'
import { ownStack } from '../bundle/own-stack.ts'
import type { RuntimeEngine } from '../engines/engine.ts'
import type { BundlePlace } from '../protocol/messages.ts'
import { registry } from '../registry.ts'
import type { AgentState } from './agents.ts'

export interface ShippingOptions {
  readonly publish: NonNullable<RuntimeEngine['publish']>
  /** What the user wants in the bundles beside the modules, or not in them. */
  readonly bundle: BundleOptions
  readonly entryScript: string | undefined
  readonly notice: (line: string) => void
}

interface Shipment {
  /** Modules that are asked for, with the promise that all who asked wait for. */
  readonly modules: Set<string>
  readonly sent: Promise<Bundle>
}

/**
 * Brings the code of agents to workers that do not see the driver's files: as a bundle of their modules, made when a task
 * first needs it. Modules that are asked for together travel together, so that what they share exists once in a worker.
 */
export class Shipping {
  readonly #options: ShippingOptions
  /** Where each module went, by its URL; `\0entry` after it: together with the script that was started. */
  readonly #shipments = new Map<string, Shipment>()
  /** By hash, for references that workers send. */
  readonly #bundles = new Map<string, Bundle>()
  #next: Shipment | undefined

  constructor(options: ShippingOptions) {
    this.#options = options
  }

  /** Resolves when every host has the agent's code: with the started script, if a function made the agent. */
  async ship(agent: AgentState): Promise<BundlePlace> {
    const { ref } = agent
    const entry = this.#isMade(agent) ? this.#options.entryScript : undefined
    const shipment = this.#shipmentOf(ref.module, entry)
    const bundle = await shipment.sent
    const labelOf = (module: string) => bundle.entries[[...shipment.modules].indexOf(module)]!
    const module = labelOf(ref.module)
    return { sha256: bundle.sha256, module, entry: entry === undefined ? undefined : labelOf(entry) }
  }

  /**
   * Whether a function made it, which only the script that was started will call. The driver's own registry decides: a
   * worker that says it cannot find an agent must not get the script for that.
   */
  #isMade({ ref }: AgentState): boolean {
    const { entryScript } = this.#options
    const elsewhere = entryScript !== undefined && entryScript !== ref.module
    return elsewhere && registry.find(ref.module, ref.name)?.made === true
  }

  /**
   * A reference from a worker, as the driver would have made it. Undefined unless the driver itself has defined that agent,
   * in a module of a bundle that it shipped for one of these agents: the driver will read, run and send what this names.
   */
  refOf({ module: named, name }: AgentRef, agents: Iterable<AgentState>): AgentRef | undefined {
    const [, sha256, label] = /^bundle:([0-9a-f]{64})\/(.+)$/.exec(named) ?? []
    const path = this.#bundles.get(sha256 ?? '')?.modules.get(label ?? '')
    if (path === undefined || ![...agents].some(({ place }) => place?.sha256 === sha256)) return undefined
    const module = pathToFileURL(path).href
    const defined = registry.find(module, name)
    return defined && { name, module, fingerprint: defined.fingerprint }
  }

  /** A stack from a worker, with the places that the same code has here. */
  stackOf(stack: string): string {
    return ownStack(stack, this.#bundles)
  }

  #shipmentOf(module: string, entry: string | undefined): Shipment {
    const key = entry === undefined ? module : `${module}\0entry`
    let shipment = this.#shipments.get(key)
    if (shipment === undefined) {
      shipment = entry === undefined ? (this.#next ??= this.#collect()) : this.#send(new Set([module, entry]))
      shipment.modules.add(module)
      this.#shipments.set(key, shipment)
      // What failed may be mended in the next run.
      shipment.sent.catch(() => this.#shipments.delete(key))
    }
    return shipment
  }

  /** A shipment that takes what is asked for in this turn of the event loop. */
  #collect(): Shipment {
    const modules = new Set<string>()
    const sent = new Promise<void>((resolve) => setImmediate(resolve)).then(() => {
      this.#next = undefined
      return this.#send(modules).sent
    })
    return { modules, sent }
  }

  #send(modules: Set<string>): Shipment {
    return { modules, sent: this.#make([...modules]) }
  }

  async #make(modules: string[]): Promise<Bundle> {
    const { publish, bundle: options, notice } = this.#options
    const { makeBundle } = await import('../bundle/index.ts')
    const bundle = await makeBundle(modules, options)
    for (const warning of bundle.warnings) notice(warning)
    this.#bundles.set(bundle.sha256, bundle)
    await publish(bundle)
    return bundle
  }
}

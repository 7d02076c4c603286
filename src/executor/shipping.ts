import { pathToFileURL } from 'node:url'
import type { AgentRef } from '../agent.ts'
import type { Bundle, BundleOptions } from '../bundle/index.ts'
import { remapStack } from '../bundle/remap-stack.ts'
import type { RuntimeEngine } from '../engines/engine.ts'
import type { BundlePlace } from '../protocol/messages.ts'
import { registry } from '../registry.ts'
import type { AgentState } from './agents.ts'

export interface ShippingOptions {
  readonly publish: NonNullable<RuntimeEngine['publish']>
  /** What the user adds to the bundles or leaves out of them. */
  readonly bundle: BundleOptions
  readonly entryScript: string | undefined
  readonly notice: (line: string) => void
}

interface Shipment {
  /** The modules to ship, and the promise that all callers await. */
  readonly modules: Set<string>
  readonly sent: Promise<Bundle>
}

/**
 * Ships the code of agents to workers that cannot see the driver's files: as a bundle of their modules, made when a task first
 * needs it. Modules that are needed together are bundled together, so that a worker loads shared modules only once.
 */
export class Shipping {
  readonly #options: ShippingOptions
  /** The bundle of each module, by URL; with the suffix `\0entry`: bundled together with the started script. */
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
   * Whether a function made the agent, so that it exists only after the started script has run. The driver's own registry
   * decides: a worker must not get the script just by claiming that an agent is missing.
   */
  #isMade({ ref }: AgentState): boolean {
    const { entryScript } = this.#options
    const elsewhere = entryScript !== undefined && entryScript !== ref.module
    return elsewhere && registry.find(ref.module, ref.name)?.made === true
  }

  /**
   * Turns a worker's reference into the driver's own. Undefined unless the driver itself has defined that agent, in a module of
   * a bundle that it shipped for one of these agents: the driver reads, runs and sends what the reference names.
   */
  refOf({ module: named, name }: AgentRef, agents: Iterable<AgentState>): AgentRef | undefined {
    const [, sha256, label] = /^bundle:([0-9a-f]{64})\/(.+)$/.exec(named) ?? []
    const path = this.#bundles.get(sha256 ?? '')?.modules.get(label ?? '')
    if (path === undefined || ![...agents].some(({ place }) => place?.sha256 === sha256)) return undefined
    const module = pathToFileURL(path).href
    const defined = registry.find(module, name)
    return defined && { name, module, fingerprint: defined.fingerprint }
  }

  /** A worker's stack with the driver's own file paths. */
  stackOf(stack: string): string {
    return remapStack(stack, this.#bundles)
  }

  #shipmentOf(module: string, entry: string | undefined): Shipment {
    const key = entry === undefined ? module : `${module}\0entry`
    let shipment = this.#shipments.get(key)
    if (shipment === undefined) {
      shipment = entry === undefined ? (this.#next ??= this.#collect()) : this.#send(new Set([module, entry]))
      shipment.modules.add(module)
      this.#shipments.set(key, shipment)
      // The next run may succeed, after the user has corrected the code.
      shipment.sent.catch(() => this.#shipments.delete(key))
    }
    return shipment
  }

  /** A shipment that collects all requests of this turn of the event loop. */
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
    const { bundleOf } = await import('../bundle/reuse.ts')
    const bundle = await bundleOf(modules, options)
    for (const warning of bundle.warnings) notice(warning)
    this.#bundles.set(bundle.sha256, bundle)
    await publish(bundle)
    return bundle
  }
}

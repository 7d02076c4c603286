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

  /** Resolves when every host has the agent's code. `withEntry`: with the started script, for an agent that a function made. */
  async ship({ ref }: AgentState, withEntry: boolean): Promise<BundlePlace> {
    const { entryScript } = this.#options
    const entry = withEntry ? entryScript : undefined
    const shipment = this.#shipmentOf(ref.module, entry)
    const bundle = await shipment.sent
    const labelOf = (module: string) => bundle.entries[[...shipment.modules].indexOf(module)]!
    const module = labelOf(ref.module)
    return { sha256: bundle.sha256, module, entry: entry === undefined ? undefined : labelOf(entry) }
  }

  /** Whether an agent that was not found in its own module may be found by way of the script that was started. */
  mayNeedEntry({ ref, place }: AgentState): boolean {
    const { entryScript } = this.#options
    return place?.entry === undefined && entryScript !== undefined && entryScript !== ref.module
  }

  /** Whether a function made it, which only the script that was started will call. */
  isMade(agent: AgentState): boolean {
    return this.mayNeedEntry(agent) && registry.find(agent.ref.module, agent.ref.name)?.made === true
  }

  /** A reference from a worker, as the driver would have made it. */
  refOf(ref: AgentRef): AgentRef {
    const [, sha256, label] = /^bundle:([^/]+)\/(.+)$/.exec(ref.module) ?? []
    const path = this.#bundles.get(sha256 ?? '')?.modules.get(label ?? '')
    if (path === undefined) return ref
    const module = pathToFileURL(path).href
    return { ...ref, module, fingerprint: registry.find(module, ref.name)?.fingerprint }
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

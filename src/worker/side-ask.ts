/** The key of the function by which a context makes requests from the side thread. */
export const SIDE: unique symbol = Symbol.for('manyworlds.side')

export interface SideAnswer {
  /** 1 when the answer has arrived: code that blocks the event loop can wait for it with `Atomics.wait`. */
  readonly flag: Int32Array<SharedArrayBuffer>
  readonly answer: Promise<unknown>
}

export interface SideAsker {
  [SIDE](service: string, question: unknown): SideAnswer
}

/** Asks a service while the event loop may be blocked. The task's clock keeps running. */
export const askAside = (ctx: object, service: string, question: unknown): SideAnswer =>
  (ctx as SideAsker)[SIDE](service, question)

/** Under this a context asks the driver from a thread beside its event loop. */
export const SIDE: unique symbol = Symbol.for('manyworlds.side')

export interface SideAnswer {
  /** 1 when the answer is there: whoever blocks the loop can wait for it with `Atomics.wait`. */
  readonly flag: Int32Array<SharedArrayBuffer>
  readonly answer: Promise<unknown>
}

export interface SideAsker {
  [SIDE](service: string, question: unknown): SideAnswer
}

/** Asks a service of the driver while the event loop may be blocked. The task's clock runs meanwhile. */
export const askAside = (ctx: object, service: string, question: unknown): SideAnswer =>
  (ctx as SideAsker)[SIDE](service, question)

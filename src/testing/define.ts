import { type Agent, defineAgent } from '../agent.ts'

type Run<I, O> = Parameters<typeof defineAgent<I, O>>[0]['run']

/** Defines agents of the conformance kit in a module. */
export const defineIn =
  (module: string) =>
  <I, O>(name: string, run: Run<I, O>): Agent<I, Awaited<O>, undefined> =>
    defineAgent<I, O, undefined, undefined, string>({ name: `kit-${name}`, module, run })

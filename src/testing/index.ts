import { shutdown } from '../runners/runners.ts'
import type { EngineFactory, EngineReference, Kit, KitOptions } from './case.ts'
import { answerCases } from './cases/answers.ts'
import { blobCases } from './cases/blobs.ts'
import { controlCases } from './cases/control.ts'
import { crashCases } from './cases/crashes.ts'
import { endCases } from './cases/end.ts'
import { experienceCases } from './cases/experience.ts'
import { keptAnswerCases } from './cases/kept-answers.ts'
import { linkCases } from './cases/links.ts'
import { modelCases } from './cases/models.ts'
import { serviceCases } from './cases/services.ts'
import { volumeCases } from './cases/volume.ts'
import { testRunner } from './runner.ts'

export type { EngineFactory, EngineReference, KitOptions } from './case.ts'

const CASE_TIMEOUT_MS = 300_000
const { after, describe, it } = await testRunner()

/**
 * Checks an engine against every promise of the executor: the conformance kit. Call it in a test file of Vitest or
 * node:test. All cases share one engine, which is started once.
 *
 * Give the engine by reference where you can: the case in which the driver is killed starts a driver of its own, which
 * has to import the engine.
 *
 * An engine whose workers have no third descriptor says `{ sideWire: false }`: see docs/writing-an-engine.md.
 *
 * @example
 * testEngine('mine', { module: new URL('./my-engine.ts', import.meta.url), export: 'MyEngine' })
 */
export function testEngine(name: string, engine: EngineFactory | EngineReference, options: KitOptions = {}): void {
  const reference = typeof engine === 'function' ? undefined : engine
  let factory: EngineFactory | undefined = typeof engine === 'function' ? engine : undefined
  const kit: Kit = {
    conf: (config) => ({ workerNum: 2, concurrency: 16, warmMs: 300_000, store: false, ...config, cls: factory! }),
    reference,
    hasSideWire: options.sideWire ?? true,
    sharesLoopback: options.loopback ?? true,
  }
  describe(`the ${name} engine keeps its promises`, () => {
    after(() => shutdown())
    const cases = [
      ...[...answerCases, ...controlCases, ...crashCases, ...serviceCases, ...keptAnswerCases, ...modelCases],
      ...[...blobCases, ...experienceCases, ...volumeCases, ...endCases, ...linkCases],
    ]
    for (const { name: promise, run } of cases)
      it(promise, { timeout: CASE_TIMEOUT_MS }, async () => {
        factory ??= await resolve(reference!)
        await run(kit)
      })
  })
}

async function resolve({ module, export: name }: EngineReference): Promise<EngineFactory> {
  const exported = ((await import(String(module))) as Record<string, unknown>)[name]
  if (typeof exported !== 'function') throw new TypeError(`${module} does not export a class or function '${name}'`)
  return exported as EngineFactory
}

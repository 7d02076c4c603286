import { shutdown } from '../runners/runners.ts'
import type { Case, EngineFactory, EngineReference, Kit, KitOptions, KitPart } from './case.ts'
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

export type { EngineFactory, EngineReference, KitOptions, KitPart } from './case.ts'

const CASE_TIMEOUT_MS = 300_000

/** All cases, in their order. The end comes last: an engine that starts a cluster for itself has one for all cases before it. */
const PARTS: Readonly<Record<KitPart, readonly Case[]>> = {
  answers: answerCases,
  control: controlCases,
  crashes: crashCases,
  services: serviceCases,
  keptAnswers: keptAnswerCases,
  models: modelCases,
  blobs: blobCases,
  experience: experienceCases,
  volume: volumeCases,
  links: linkCases,
  end: endCases,
}

const { after, describe, it, skip } = await testRunner()

/**
 * Checks an engine against every guarantee of the executor: the conformance kit. Call it in a test file of Vitest or
 * node:test. All cases share one engine, which is started once.
 *
 * Give the engine by reference if you can: the cases in which the driver is killed start their own driver, which must import
 * the engine.
 *
 * If the workers of the engine have no third descriptor, pass `{ sideWire: false }`; if they run in the driver's process, pass
 * `{ processes: false }`: see docs/writing-an-engine.md. While you write an engine, `{ parts: ['answers', 'end'] }` runs a part of
 * the kit.
 *
 * @example
 * testEngine('mine', { module: new URL('./my-engine.ts', import.meta.url), export: 'MyEngine' })
 */
export function testEngine(name: string, engine: EngineFactory | EngineReference, options: KitOptions = {}): void {
  const reference = typeof engine === 'function' ? undefined : engine
  let factory: EngineFactory | undefined = typeof engine === 'function' ? engine : undefined
  const kit: Kit = {
    conf: (config) => ({ workerNum: 2, concurrency: 16, keepWarmMs: 300_000, store: false, ...config, cls: factory! }),
    reference,
    hasSideWire: options.sideWire ?? true,
    sharesLoopback: options.loopback ?? true,
    hasProcesses: options.processes ?? true,
  }
  describe(`the ${name} engine keeps its promises`, () => {
    after(() => shutdown())
    const cases = Object.entries(PARTS).flatMap(([part, cases]) =>
      (options.parts ?? [part]).includes(part as KitPart) ? cases : [],
    )
    const left = kit.hasProcesses ? [] : cases.filter(({ needsProcess }) => needsProcess)
    for (const { name: promise } of left) skip(`${promise} (needs workers with processes of their own)`)
    if (left.length > 0)
      process.stderr.write(
        `manyworlds kit: SKIPPED: ${left.length} of ${cases.length} cases, because the ${name} engine has no processes of its own\n`,
      )
    for (const { name: promise, run } of cases.filter((one) => !left.includes(one)))
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

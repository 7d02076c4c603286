import type { Context } from '../agent.ts'
import { ManyworldsError } from '../errors.ts'
import { registry } from '../registry.ts'
import type { Grade } from './grade.ts'
import type { GradeContext, Grader } from './grader.ts'
import type { GradeSample } from './sample.ts'

export type CallerContext = Omit<GradeContext, 'params'>

/**
 * Grades one answer in this process, without a run: for tests of graders, and for graders that combine others.
 *
 * @example
 * await gradeHere(exactMatch(), { answer: 'Paris', groundTruth: 'Paris' }) // { reward: 1, success: true }
 */
export async function gradeHere(
  grader: Grader,
  sample: Pick<GradeSample, 'answer' | 'groundTruth'> & Partial<GradeSample>,
  ctx: CallerContext = NO_RUN,
): Promise<Grade> {
  const { module, name } = grader.ref
  const found = registry.find(module, name)
  if (!found)
    throw new ManyworldsError(
      'GRADER_INVALID',
      `grader '${name}' is not defined in this process; import its module first: ${module}`,
    )
  const task = { id: '', input: undefined }
  const { signal } = ctx
  const context = {
    signal,
    params: grader.params,
    log: (...words: Parameters<Context['log']>) => ctx.log(...words),
    ask: (...words: Parameters<Context['ask']>) => ctx.ask(...words),
    generate: (...words: Parameters<Context['generate']>) => ctx.generate(...words),
    model: (name: string) => ctx.model(name),
  }
  return (await found.definition.run({ task, ...sample }, context as unknown as Context)) as Grade
}

const NO_RUN: CallerContext = {
  signal: new AbortController().signal,
  log() {},
  ask(service) {
    throw new ManyworldsError(
      'SERVICE_UNKNOWN',
      `unknown service '${service}': gradeHere grades without a run, so there are no services`,
    )
  },
  generate: ({ model }) => noModel(model),
  model: (name) => noModel(name),
}

function noModel(name: string): never {
  throw new ManyworldsError(
    'MODEL_UNKNOWN',
    `unknown model '${name}': gradeHere grades without a run, so there are no models`,
  )
}

import { describeEngine, type EngineChoice } from '../choice.ts'

/**
 * Tasks in the driver's own process, for breakpoints and unit tests: the same responses, but nothing protects the driver from
 * its tasks. For `engine` of a RunConfig. See docs/engines.md.
 *
 * @example
 * const response = await Runners.runTask(shout.task('hello'), { engine: inline(), store: false })
 */
export const inline = (): EngineChoice<'inline'> => describeEngine('inline')

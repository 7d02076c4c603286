import type { Environment, EnvironmentContext, ResetResult, StepResult } from 'manyworlds/agents'

/** Drives an environment without an agent, as the step agent would. */
export async function begin<Input, Observation, Action>(
  world: Environment<Input, Observation, Action>,
  input: Input,
): Promise<{
  readonly first: ResetResult<unknown, Observation, Action>
  readonly log: string[]
  step(action: Action): Promise<StepResult<unknown, Observation, Action>>
  close(): void
}> {
  const log: string[] = []
  const ctx = {
    log: (...values: unknown[]) => void log.push(values.join(' ')),
    randomStream: () => () => 0.25,
    signal: new AbortController().signal,
    call: undefined,
  } as unknown as EnvironmentContext & { call: undefined }
  const first = await world.reset({ id: 'test', input }, ctx)
  return {
    first,
    log,
    step: async (action) => world.step(first.state, action, ctx),
    close: () => void world.close?.(first.state),
  }
}

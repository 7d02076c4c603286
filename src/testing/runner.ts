/** The part of a test runner that the kit uses: Vitest if it runs under Vitest, otherwise node:test. */
interface Runner {
  describe(name: string, body: () => void): void
  it(name: string, options: { timeout: number }, body: () => Promise<void>): void
  /** Names a test that is not run. */
  skip(name: string): void
  after(body: () => Promise<void>): void
}

export async function testRunner(): Promise<Runner> {
  if (process.env.VITEST !== undefined) {
    const { afterAll, describe, it } = await import('vitest')
    return { describe, it, skip: (name) => it.skip(name), after: (body) => afterAll(body, 60_000) }
  }
  const { after, describe, it } = await import('node:test')
  return {
    describe: (name, body) => void describe(name, body),
    it: (name, options, body) => void it(name, options, body),
    skip: (name) => void it.skip(name),
    after,
  }
}

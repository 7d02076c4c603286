/** The part of a test runner that the kit uses: Vitest when it runs under it, else Node's own. */
interface Runner {
  describe(name: string, body: () => void): void
  it(name: string, options: { timeout: number }, body: () => Promise<void>): void
  after(body: () => Promise<void>): void
}

export async function testRunner(): Promise<Runner> {
  if (process.env.VITEST !== undefined) {
    const { afterAll, describe, it } = await import('vitest')
    return { describe, it, after: (body) => afterAll(body, 60_000) }
  }
  const { after, describe, it } = await import('node:test')
  return {
    describe: (name, body) => void describe(name, body),
    it: (name, options, body) => void it(name, options, body),
    after,
  }
}

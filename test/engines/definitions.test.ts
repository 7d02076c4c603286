import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { EngineName, inline, Runners } from 'manyworlds'
import { describe, expect, it } from 'vitest'
import { engines } from '../../dist/engines/all.js'
import type { EngineDefinition } from '../../dist/engines/definition.js'
import { RUN_KEYS, resolveConfig } from '../../dist/run-config-schema.js'
import { withoutSecrets } from '../../dist/runners/stored-config.js'
import { echo } from '../../dist/testing/agents.js'
import { manyworlds, newFolder } from '../cli/manyworlds.ts'

const SECRET = 'hunter2-hunter2-hunter2'
const all = engines as readonly unknown[] as readonly EngineDefinition<string, object>[]
const withOptions = all.filter(({ options }) => options !== undefined)

describe('what is stored of an engine’s options', () => {
  it.each(withOptions)('of $name, an option that its definition does not name is not', ({ name, stored }) => {
    const config = { ...resolveConfig({}), engineName: name, [name]: { brandNewSecret: SECRET } }
    expect(JSON.stringify(withoutSecrets(config as never))).not.toContain(SECRET)
    expect(stored).toBeDefined()
  })

  it.each([
    ['nodes', { token: SECRET, tls: { key: SECRET } }],
    ['ray', { token: SECRET, runtimeEnv: { envVars: { KEY: SECRET } } }],
    ['spark', { remote: `sc://a:1/;token=${SECRET}`, conf: { password: SECRET }, env: { KEY: SECRET } }],
  ] as const)('of %s, no secret that can be given', (name, options) => {
    const config = resolveConfig({ engineName: name, [name]: options })
    expect(JSON.stringify(config)).toContain(SECRET)
    expect(JSON.stringify(withoutSecrets(config))).not.toContain(SECRET)
  })

  it('nothing of options that stand beside another engine reaches the file of a run', async () => {
    const store = join(newFolder(), 'run.sqlite')
    await Runners.runTask(echo.task(1), {
      ...{ engine: inline(), store, keepWarmMs: 0 },
      ...{ nodes: { token: SECRET }, ray: { token: SECRET }, spark: { conf: { password: SECRET } } },
    })
    expect(readFileSync(store).includes(SECRET)).toBe(false)
  })
})

describe('the list of engines', () => {
  const names = all.map(({ name }) => name)

  it('is what a run configuration and the command line know', async () => {
    expect(Object.values(EngineName)).toEqual(names)
    for (const { name } of withOptions) expect(RUN_KEYS).toContain(name)
    const { stdout } = await manyworlds(['help', 'run'])
    const text = stdout.replaceAll(/\s+/g, ' ')
    for (const { name, where } of all) {
      expect(text).toContain(where)
      expect(text).toContain(name)
    }
  })

  it('is the only place outside an engine’s folder, beside its public names, that mentions an engine', () => {
    const allowed = ['engines/all.ts', 'index.ts', 'run-config.ts']
    for (const name of ['ray']) expect(mentions(name)).toEqual(allowed)
  })
})

/** Source files outside the engine's folder whose code, not counting comments, has the word. */
function mentions(name: string): string[] {
  const root = join(import.meta.dirname, '../../src')
  return readdirSync(root, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.ts') && !file.startsWith(`engines/${name}/`))
    .filter((file) => {
      const code = readFileSync(join(root, file), 'utf8').replaceAll(/\/\*[\s\S]*?\*\/|(?<=^|\s)\/\/.*$/gm, '')
      return new RegExp(`\\b${name}\\b`, 'i').test(code)
    })
    .sort()
}

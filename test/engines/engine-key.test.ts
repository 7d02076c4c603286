import { inline, LocalRuntime, nodes, type RunConfig, Runners, ray, spark } from 'manyworlds'
import { describe, expect, it } from 'vitest'
import { runSpec } from '../../dist/cli/commands/run/spec.js'
import { parse } from '../../dist/cli/frame/parse.js'
import { typedConfig } from '../../dist/cli/script/typed-config.js'
import { resolveConfig } from '../../dist/run-config-schema.js'
import { echo } from '../../dist/testing/agents.js'

const resolved = (config: RunConfig) => {
  const { engineName, inLocal, cls, nodes, ray, spark } = resolveConfig(config)
  return JSON.parse(JSON.stringify({ engineName, inLocal, cls: cls && 'own', nodes, ray, spark }))
}

describe('engine:', () => {
  it.each<[RunConfig, RunConfig]>([
    [{ engine: 'local' }, {}],
    [
      { engine: 'ray', ray: { numCpus: 2 } },
      { engineName: 'ray', ray: { numCpus: 2 } },
    ],
    [{ engine: ray() }, { engineName: 'ray' }],
    [{ engine: ray({ inLocal: true, numCpus: 1 }) }, { engineName: 'ray', inLocal: true, ray: { numCpus: 1 } }],
    [{ engine: spark({ remote: 'sc://a:1' }) }, { engineName: 'spark', spark: { remote: 'sc://a:1' } }],
    [{ engine: nodes({ addresses: ['a:1'] }) }, { engineName: 'nodes', nodes: { addresses: ['a:1'] } }],
    [{ engine: inline() }, { engineName: 'inline' }],
    [{ engine: LocalRuntime }, { cls: LocalRuntime }],
    [
      { engine: ray({ numCpus: 1 }), inLocal: true },
      { engineName: 'ray', inLocal: true, ray: { numCpus: 1 } },
    ],
    [
      { engine: ray({ numCpus: 1 }), ray: { numCpus: 1 } },
      { engineName: 'ray', ray: { numCpus: 1 } },
    ],
  ])('%o is the same as %o', (config, older) => {
    expect(resolved(config)).toEqual(resolved(older))
  })

  it.each<[RunConfig, string]>([
    [{ engine: 'local', engineName: 'ray' }, 'engineName'],
    [{ engine: ray({ numCpus: 1 }), ray: { numCpus: 2 } }, 'ray'],
    [{ engine: ray({ inLocal: false }), inLocal: true }, 'inLocal'],
    [{ engine: inline(), cls: LocalRuntime }, 'cls'],
    [{ engine: LocalRuntime, engineName: 'nodes' }, 'engineName'],
  ])('%o contradicts itself', async (config, key) => {
    const refused = Runners.runTask(echo.task(1), { ...config, store: false })
    await expect(refused).rejects.toMatchObject({ code: 'CONFIG_INVALID' })
    await expect(refused).rejects.toThrow(`\`engine\` and \`${key}\``)
  })

  it.each([42, 'rya', null, { engineName: 'rya' }])('%o is refused, with what it may be', async (engine) => {
    const refused = Runners.runTask(echo.task(1), { engine, store: false } as never)
    await expect(refused).rejects.toMatchObject({ code: 'CONFIG_INVALID' })
    await expect(refused).rejects.toThrow(/`engine` must be one of 'local', .*'ray'.*, a choice such as nodes\(/)
  })

  it('takes an engine of the user’s own', async () => {
    const made = await Runners.runTask(echo.task(1), {
      engine: () => new LocalRuntime(),
      workerNum: 1,
      store: false,
      keepWarmMs: 0,
    })
    expect(made.answer).toBe(1)
  })

  it('yields to --engine on the command line', () => {
    const typed = (line: string, script: RunConfig) => {
      const parsed = parse(runSpec, ['a.ts', ...line.split(' ').filter(Boolean)])
      if (parsed.help) throw new Error('help')
      const naming = { name: () => ({}) }
      const none = { settings: new Map(), unusable: new Map(), others: new Map() }
      return typedConfig(parsed.args as never, none, naming as never)(script)
    }
    expect(typed('--engine inline', { engine: ray({ numCpus: 1 }) })).toMatchObject({ engineName: 'inline' })
    expect(typed('--engine local', { engine: LocalRuntime })).not.toHaveProperty('cls')
    expect(typed('', { engine: LocalRuntime })).toMatchObject({ cls: LocalRuntime })
    expect(typed('--ray-address a:1', { engine: ray({ numCpus: 1, inLocal: true }) })).toMatchObject({
      ...{ engineName: 'ray', inLocal: false, ray: { numCpus: 1, address: 'a:1' } },
    })
  })

  it('describes, and does nothing else', () => {
    const choice = ray({ numCpus: 1 })
    expect(Object.isFrozen(choice)).toBe(true)
    expect(structuredClone(choice)).toEqual({ engineName: 'ray', ray: { numCpus: 1 } })
  })
})

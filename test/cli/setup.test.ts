import { describe, expect, it } from 'vitest'
import { type RunArgs, runSpec } from '../../dist/cli/commands/run/spec.js'
import { parse } from '../../dist/cli/frame/parse.js'
import { rayOf } from '../../dist/engines/ray/cli.js'
import { manyworlds, newFolder, programs } from './manyworlds.ts'
import { plainScript } from './node-script.ts'
import { project } from './project.ts'

describe('manyworlds setup ray', () => {
  it('says what is missing where nothing can be made', async () => {
    const env = { PATH: newFolder(), XDG_CACHE_HOME: newFolder() }
    const { code, stdout, stderr } = await manyworlds(['setup', 'ray'], { env })
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
    expect(stderr).toMatch(/^manyworlds: setting up Python for Ray [\d.]+ in .*; this happens once/)
    expect(stderr.trimEnd().split('\n').at(-1)).toMatch(/neither uv nor python3 is on the PATH; .* \[PYTHON_MISSING\]$/)
  })

  it('passes on what uv says', async () => {
    const uv = 'echo "error: no route to host" >&2; exit 2'
    const env = { PATH: `${programs({ uv })}:/usr/bin:/bin`, XDG_CACHE_HOME: newFolder() }
    const { code, stderr } = await manyworlds(['setup', 'ray', '--version', '2.50.0'], { env })
    expect(code).toBe(1)
    expect(stderr).toContain('cannot create the Python environment for Ray 2.50.0')
    expect(stderr).toMatch(/exited with code 2:\nerror: no route to host \[PYTHON_SETUP_FAILED\]\n$/)
  })

  it('prints where it is, makes it once, and again if it has to', async () => {
    // A uv that makes environments whose Python says what it was asked for.
    const uv = `if [ "$1" = venv ]; then for folder; do :; done; mkdir -p "$folder/bin"; cp "$0.python" "$folder/bin/python"; fi`
    const bin = programs({ uv, 'uv.python': 'echo Ray 2.50.0 on Python 3.11.9' })
    const cache = newFolder()
    const env = { PATH: `${bin}:/usr/bin:/bin`, XDG_CACHE_HOME: cache }
    const setUp = (...more: string[]) => manyworlds(['setup', 'ray', '--version', '2.50.0', ...more], { env })
    const stdout = `Ray 2.50.0 on Python 3.11.9, in ${cache}/manyworlds/python/ray-2.50.0\n`
    expect(await setUp()).toMatchObject({ code: 0, stdout, stderr: expect.stringContaining('setting up Python') })
    expect(await setUp()).toEqual({ code: 0, stdout, stderr: '' })
    expect(await setUp('--force')).toMatchObject({ code: 0, stdout, stderr: expect.stringContaining('setting up') })
  })

  it.each([
    [['setup'], 'WHAT is missing'],
    [['setup', 'flink'], 'WHAT must be one of ray, spark, gymnasium, reasoning-gym, lora, not "flink"'],
    [['setup', 'gymnasium', '--version', '1.0.0'], '--version is for "setup ray" and "setup spark"'],
    [['setup', 'ray', '--packages', 'a'], '--packages is for "setup gymnasium" and "setup reasoning-gym"'],
    [['setup', 'ray', '--torch', 'cpu'], '--torch is for "setup lora"'],
    [['setup', 'lora', '--torch', 'cuda'], '--torch must be pypi, auto, cpu or a build of PyTorch'],
    [['setup', 'ray', '--version', 'new'], '--version must be a version such as'],
    [['setup', 'ray', '--token-file', 'a'], '--token-file can only be used with --address'],
  ])('%j is a mistake', async (words, message) => {
    const { code, stderr } = await manyworlds(words)
    expect(code).toBe(2)
    expect(stderr).toContain(message)
  })

  it('does not wait for a cluster where there is none', async () => {
    const { code, stderr } = await manyworlds(['setup', 'ray', '--address', '127.0.0.1:1'])
    expect(code).toBe(1)
    expect(stderr).toMatch(/nothing listens there .*\[RAY_FAILED\]\n$/)
  })
})

describe('manyworlds run --ray-address', () => {
  it('asks for the engine, and says what is wrong with the cluster', async () => {
    const { options } = project({ 'plain.ts': plainScript(1, 1) })
    const { code, stderr } = await manyworlds(['run', 'plain.ts', '--ray-address', '127.0.0.1:1'], options)
    expect(code).toBe(1)
    expect(stderr).toContain('on ray')
    expect(stderr).toContain('cannot use the Ray cluster at 127.0.0.1:1: nothing listens there')
  })

  it('goes over what the script gives, key by key', () => {
    const typed = (...words: string[]) => {
      const parsed = parse(runSpec, ['a.ts', ...words])
      if (parsed.help) throw new Error('help')
      return parsed.args as unknown as RunArgs
    }
    const script = { engineName: 'ray', ray: { address: 'a:1', token: 'secret', numCpus: 2 } } as const
    expect(rayOf(typed(), script)).toEqual({ ray: script.ray })
    expect(rayOf(typed('--ray-address', 'b:2', '--token-file', 't'), script)).toEqual({
      ray: { address: 'b:2', tokenFile: 't', numCpus: 2 },
    })
    expect(rayOf(typed('--token-file', 't'), { engineName: 'nodes' })).toEqual({})
  })
})

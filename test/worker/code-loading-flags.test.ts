import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, onTestFinished, test } from 'vitest'
import { printed, runScript } from '../support/run-script.ts'
import { userProject } from '../support/user-project.ts'

const TSC = fileURLToPath(new URL('../../node_modules/typescript/bin/tsc', import.meta.url))
const compiled = (extra: Record<string, string> = {}) => {
  const at = userProject({
    'package.json': '{"type":"module"}',
    'tsconfig.json': JSON.stringify({
      compilerOptions: {
        module: 'nodenext',
        target: 'es2022',
        rootDir: 'src',
        outDir: 'dist',
        sourceMap: true,
        types: [],
        skipLibCheck: true,
      },
    }),
    // Types that the compiler takes out, and an enum, make the source of `run` another one than that of the compiled file.
    'src/agents.ts': `
      import { defineAgent } from 'manyworlds'
      enum Step { One = 1 }
      export const next = defineAgent({ name: 'next', run: async (n: number) => { const m: number = n; return m + Step.One } })`,
    'src/main.ts': `
      import { defineAgent, Runners } from 'manyworlds'
      import { next } from './agents.js'
      const double = defineAgent({ name: 'double', run: async (n: number) => { const m: number = n; return 2 * m } })
      const responses = await Runners.runTask([double.task(4), next.task(4)])
      console.log(JSON.stringify([...responses.values()].map(({ answer }) => answer)))`,
    ...extra,
  })
  execFileSync(process.execPath, [TSC, '-p', at('.'), '--noCheck'], { stdio: 'inherit' })
  return at
}

describe('a compiled project whose source maps lead back to TypeScript', () => {
  test('runs the compiled files in workers, whoever has enabled source maps', async () => {
    const at = compiled()
    const enabled: [string, Parameters<typeof runScript>[1]][] = [
      ['a flag', { flags: ['--enable-source-maps'] }],
      ['NODE_OPTIONS', { env: { NODE_OPTIONS: '--enable-source-maps' } }],
      ['a preloaded module', { flags: ['--import', 'data:text/javascript,process.setSourceMapsEnabled(true)'] }],
    ]
    for (const [how, options] of enabled) {
      const ended = await runScript(at('dist/main.js'), options)
      expect(printed(ended), `${how}: ${ended.stderr}`).toEqual([[8, 5]])
      expect(ended).toMatchObject({ code: 0, stderr: '' })
    }
  })
})

describe('node --watch', () => {
  const script = (agent: string) => `
    import { defineAgent, Runners } from 'manyworlds'
    const next = defineAgent({ name: 'next', run: ${agent} })
    const first = await Runners.runTask(next.task(1), { store: 'runs' })
    const second = Runners.syncRunTask([next.task(first.answer)], { store: 'runs' })
    console.log(JSON.stringify([first.answer, second.get('#1').answer]))`

  test('runs a script that has run files, and runs it again when it was changed', async () => {
    const at = userProject({ 'main.mjs': script('async (n) => n + 1') })
    const watcher = watch(at('main.mjs'), at('.'))
    expect(await watcher.until('Completed running')).toContain('[2,3]')
    writeFileSync(at('main.mjs'), script('async (n) => n + 100'))
    expect(await watcher.until('Completed running')).toContain('[101,201]')
  })

  test('does not reach into workers: a thread that an agent starts says only what it has to say', async () => {
    const at = userProject({
      'main.mjs': `
        import { Worker } from 'node:worker_threads'
        import { defineAgent, Runners } from 'manyworlds'
        const ask = defineAgent({
          name: 'ask',
          run: () => new Promise((answer) => new Worker(new URL('thread.mjs', import.meta.url)).once('message', answer)),
        })
        console.log(JSON.stringify((await Runners.runTask(ask.task(0))).answer))`,
      'thread.mjs': `
        import { parentPort } from 'node:worker_threads'
        setImmediate(() => parentPort.postMessage('from the thread'))`,
    })
    expect(await watch(at('main.mjs'), at('.')).until('Completed running')).toContain('"from the thread"')
  })
})

function watch(script: string, cwd: string): { until(words: string): Promise<string> } {
  const { NODE_OPTIONS: _, VITEST: __, ...env } = process.env
  const child = spawn(process.execPath, ['--watch', script], { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] })
  onTestFinished(() => end(child))
  let text = ''
  let changed = () => {}
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (more: string) => {
      text += more
      changed()
    })
  return {
    /** What was printed since the last call, up to these words. */
    async until(words) {
      while (!text.includes(words)) {
        if (text.includes('Failed running')) throw new Error(text)
        await new Promise<void>((resolve) => {
          changed = resolve
        })
      }
      const end = text.indexOf(words) + words.length
      const seen = text.slice(0, end)
      text = text.slice(end)
      return seen
    },
  }
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const exited = once(child, 'exit')
  child.kill('SIGTERM')
  await exited
}

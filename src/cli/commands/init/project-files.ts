interface Project {
  readonly name: string
  /** The entry for manyworlds in package.json: a version or a path. */
  readonly dependency: string
}

/** The files of a new project, by name. */
export const projectFiles = (project: Project): Record<string, string> => ({
  'package.json': packageJson(project),
  'agents.ts': AGENTS,
  'tsconfig.json': TSCONFIG,
  '.gitignore': 'node_modules/\n.manyworlds/\n',
  'README.md': readme(project),
})

function packageJson({ name, dependency }: Project): string {
  const content = {
    name,
    private: true,
    type: 'module',
    engines: { node: '>=22.18' },
    scripts: { start: 'manyworlds run agents.ts', check: 'tsc' },
    dependencies: { manyworlds: dependency },
    devDependencies: { '@types/node': '^24.0.0', typescript: '^5.9.0 || ^7.0.0' },
  }
  return `${JSON.stringify(content, null, 2)}\n`
}

const AGENTS = `// An agent and a few tasks for it. Tasks run many at once, in worker processes that import this same file.
import { setTimeout as sleep } from 'node:timers/promises'
import { defineAgent, Runners } from 'manyworlds'

const counter = defineAgent({
  name: 'counter',
  run: async (text: string, ctx) => {
    await sleep(200 + 300 * ctx.random(), undefined, { signal: ctx.signal }) // here you would ask a model
    const words = text.split(/\\s+/).length
    ctx.step({ action: 'count the words', observation: words })
    return { text, words }
  },
})

const results = await Runners.runTask(
  [
    { id: 'whales', input: 'Whales sing for hours', agent: counter },
    { id: 'bees', input: 'Bees dance to tell the way', agent: counter },
    { id: 'crows', input: 'Crows remember faces', agent: counter },
  ],
  { timeoutMs: 10_000, maxAttempts: 2 },
)

for (const [id, response] of results) {
  if (response.success) console.log(\`\${id}: \${response.answer.words} words\`)
  else console.error(\`\${id}: \${response.status}: \${response.error.message}\`)
}
`

const TSCONFIG = `{
  "compilerOptions": {
    "target": "es2024",
    "module": "nodenext",
    "types": ["node"],
    "strict": true,
    "noEmit": true,
    "allowImportingTsExtensions": true,
    "erasableSyntaxOnly": true,
    "verbatimModuleSyntax": true,
    "skipLibCheck": true
  }
}
`

const readme = ({ name }: Project) => `# ${name}

Agent tasks, run many at once with manyworlds. Node 22.18 or newer.

    npm install
    npm start                       # manyworlds run agents.ts
    npm run check                   # types

    npx manyworlds show last        # what happened
    npx manyworlds run agents.ts --workers 4 --timeout 30s
    npx manyworlds help             # everything else
`

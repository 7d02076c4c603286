// Brings a checkout to the state where everything runs: packages installed, dist/ built (not with `--packages`).
// Plain JavaScript without dependencies, because on a fresh clone it runs on whatever Node the machine has.
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const stamps = join(root, 'node_modules', '.cache', 'manyworlds')

const hash = (text) => createHash('sha256').update(text).digest('hex')
const stamped = (name) => (existsSync(join(stamps, name)) ? readFileSync(join(stamps, name), 'utf8') : '')
const stamp = (name, value) => {
  mkdirSync(stamps, { recursive: true })
  writeFileSync(join(stamps, name), value)
}

function run(label, command, args) {
  process.stderr.write(`manyworlds: ${label} ...\n`)
  const done = spawnSync(command, args, { cwd: root, stdio: ['ignore', 2, 2], shell: process.platform === 'win32' })
  if (done.status !== 0) {
    process.stderr.write(`manyworlds: "${command} ${args.join(' ')}" failed; its output is above\n`)
    process.exit(done.status ?? 1)
  }
}

const wanted = hash(readFileSync(join(root, 'package-lock.json'), 'utf8'))
if (stamped('installed') !== wanted) {
  // Not `npm ci`: it refuses a lock file made where some platforms' optional packages could not be seen.
  run('installing packages', 'npm', ['install', '--no-save', '--loglevel=error'])
  stamp('installed', wanted)
}

if (process.argv.includes('--packages')) process.exit()

/** The names and times of the sources in a folder. */
const stateOf = (folder, ...files) =>
  hash(
    readdirSync(join(root, folder), { recursive: true })
      .map(String)
      .filter((name) => /\.(ts|tsx|css|html|json)$/.test(name))
      .sort()
      .map((name) => `${name} ${statSync(join(root, folder, name)).mtimeMs}`)
      .concat(files.map((file) => readFileSync(join(root, file), 'utf8')))
      .join('\n'),
  )

const node = join(root, 'node_modules', '.bin', 'node')
const state = stateOf('src', 'tsconfig.json', 'tsconfig.build.json')
if (stamped('built') !== state || !existsSync(join(root, 'dist', 'index.js'))) {
  run('building', node, [join(root, 'node_modules', 'typescript', 'bin', 'tsc'), '-p', 'tsconfig.build.json'])
  // A file that was renamed or removed in src/ must not live on in dist/.
  for (const name of readdirSync(join(root, 'dist'), { recursive: true }).map(String)) {
    const source = name.replace(/(\.d\.ts|\.js)$/, '.ts')
    if (source !== name && !name.startsWith('web') && !existsSync(join(root, 'src', source)))
      rmSync(join(root, 'dist', name))
  }
  chmodSync(join(root, 'dist', 'cli', 'main.js'), 0o755)
  stamp('built', state)
}

// The page of `manyworlds view`. It takes types and constants from src/view/api.ts.
const page = hash(`${stateOf('web')}${statSync(join(root, 'src', 'view', 'api.ts')).mtimeMs}`)
if (stamped('page') !== page || !existsSync(join(root, 'dist', 'web', 'index.html'))) {
  const vite = join(root, 'node_modules', 'vite', 'bin', 'vite.js')
  run('building the viewer', node, [vite, 'build', '-c', join('web', 'vite.config.ts')])
  stamp('page', page)
}

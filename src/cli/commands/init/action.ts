import { existsSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { basename, join, relative, resolve } from 'node:path'
import { ownPackage } from '../../../own-package.ts'
import { shellWord } from '../../../text/own-command.ts'
import { painterFor } from '../../../text/paint.ts'
import { say } from '../../../text/say.ts'
import { dependencyOn } from './dependency.ts'
import { projectFiles } from './project-files.ts'
import type { InitArgs } from './spec.ts'

/** `manyworlds init [DIR]` */
export async function run({ dir = '.', force }: InitArgs): Promise<number> {
  const folder = resolve(dir)
  const files = projectFiles({ name: packageName(basename(folder)), dependency: dependencyOn(ownPackage) })
  const existing = Object.keys(files).filter((name) => existsSync(join(folder, name)))
  if (existing.length > 0 && !force) {
    const where = relative('.', folder) || 'this folder'
    say(`${where} already has these files: ${existing.join(', ')}. Nothing was changed; use --force to overwrite them`)
    return 1
  }
  try {
    await mkdir(folder, { recursive: true })
    for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text)
  } catch (error) {
    say(`cannot write to ${folder}: ${(error as Error).message}`)
    return 1
  }
  process.stdout.write(nextSteps(folder, Object.keys(files)))
  return 0
}

function nextSteps(folder: string, names: readonly string[]): string {
  const paint = painterFor(process.stdout)
  const enter = relative('.', folder)
  const steps = [...(enter === '' ? [] : [`cd ${shellWord(enter)}`]), 'npm install', 'npm start']
  return `Made ${names.join(', ')}. Next:\n\n${steps.map((step) => `  ${paint('cyan', step)}\n`).join('')}`
}

/** A name that npm accepts, as similar to the folder's name as possible. */
function packageName(folder: string): string {
  const name = folder
    .toLowerCase()
    .replaceAll(/[^a-z0-9._-]+/g, '-')
    .replaceAll(/^[._-]+|[._-]+$/g, '')
  // A package with the name of its dependency would resolve to itself.
  return name === '' || name === 'manyworlds' ? 'my-agents' : name
}

import { readFileSync } from 'node:fs'
import { dirname, resolve } from 'node:path'

/** A name in a module: where it is declared, whatever it was exported as. */
export interface Declared {
  readonly file: string
  readonly name: string
  /** Exported with `export type`: of a class, nobody can call the constructor. */
  readonly typeOnly?: boolean
}

interface Module {
  /** By local name: what an import brings. */
  readonly imports: ReadonlyMap<string, Declared>
  /** By exported name: what is exported under it, here or in another module. */
  readonly exports: ReadonlyMap<string, Declared>
  /** By local name: the text of its declarations, without comments and string literals. */
  readonly declarations: ReadonlyMap<string, string>
}

const modules = new Map<string, Module>()

/** What an entry point exports, by the name that it has for users; members of a namespace as `Runners.runTask`. */
export function exportsOf(file: string): Map<string, Declared> {
  const found = new Map<string, Declared>()
  for (const [name, declared] of read(file).exports) {
    if (declared.name !== '*') found.set(name, { ...origin(declared), typeOnly: declared.typeOnly ?? false })
    else for (const [member, inside] of exportsOf(declared.file)) found.set(`${name}.${member}`, inside)
  }
  return found
}

/** The types that a declaration names, as far as this package declares them. */
export function typesIn({ file, name, typeOnly }: Declared): Declared[] {
  const { imports, declarations } = read(file)
  const whole = declarations.get(name)
  if (whole === undefined) throw new Error(`${file} does not declare ${name}`)
  const text = typeOnly ? whole.replace(/^ +constructor\(.*\);$/m, '') : whole
  const own = new Set(typeParameters(text))
  const names = new Set(text.match(/(?<![.\w])[A-Z]\w*/g))
  return [...names]
    .filter((used) => used !== name && !own.has(used))
    .flatMap((used) => {
      const imported = imports.get(used)
      if (imported !== undefined) return imported.name === '*' ? [] : [origin(imported)]
      return declarations.has(used) ? [{ file, name: used }] : []
    })
}

/** `<T extends X = Y>` after the name, and before the parameters of methods. Those that shadow an imported type are rare. */
const typeParameters = (text: string) =>
  [...text.matchAll(/(?<=<|, |const )([A-Z]\w*)(?= extends |,|>| = )(?=[^<]*>\()/g)].map(([, name]) => name!)

/** Follows exports from module to module to the one that declares it. */
function origin({ file, name }: Declared): Declared {
  const module = read(file)
  if (module.declarations.has(name)) return { file, name }
  const next = module.exports.get(name) ?? module.imports.get(name)
  return next === undefined || next.name === '*' ? { file, name } : origin(next)
}

function read(file: string): Module {
  let module = modules.get(file)
  if (module === undefined) modules.set(file, (module = parse(file)))
  return module
}

function parse(file: string): Module {
  const text = plain(readFileSync(file, 'utf8'))
  const imports = new Map<string, Declared>()
  const exports = new Map<string, Declared>()
  const declarations = new Map<string, string>()
  for (const statement of statements(text)) {
    const [, verb, type, clause, from] =
      /^(import|export)\s+(type\s+)?(.*?)\s+from\s+['"](.+?)['"]/s.exec(statement) ?? []
    const source = from?.startsWith('.') ? resolve(dirname(file), from.replace(/\.[jt]s$/, '.d.ts')) : undefined
    if (verb !== undefined) {
      if (source === undefined) continue
      const target = verb === 'import' ? imports : exports
      const star = /^\*(?: as (\w+))?$/.exec(clause!)
      if (star?.[1] !== undefined) target.set(star[1], { file: source, name: '*' })
      else if (star)
        for (const [name, declared] of read(source).exports)
          exports.set(name, type === undefined ? declared : { ...declared, typeOnly: true })
      else
        for (const [name, as, isType] of names(clause!))
          target.set(as, { file: source, name, typeOnly: isType || type !== undefined })
      continue
    }
    const [, list] = /^export\s+(?:type\s+)?\{(.*)\}/s.exec(statement) ?? []
    if (list !== undefined) {
      for (const [name, as] of names(list)) exports.set(as, imports.get(name) ?? { file, name })
      continue
    }
    const [, exported, name] =
      /^(export )?(?:default )?(?:declare )?(?:abstract )?(?:class|interface|type|function|const|let|enum|namespace) (\w+)/.exec(
        statement,
      ) ?? []
    if (name === undefined) continue
    declarations.set(name, `${declarations.get(name) ?? ''}\n${statement}`)
    if (exported) exports.set(name, { file, name })
  }
  return { imports, exports, declarations }
}

/** `type A, B as C` → `[A, A]`, `[B, C]` */
const names = (clause: string): [name: string, as: string, isType: boolean][] =>
  clause
    .replaceAll(/[{}]/g, '')
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '')
    .map((part) => {
      const [name, as] = part.replace(/^type /, '').split(' as ')
      return [name!, as ?? name!, part.startsWith('type ')]
    })

/** Statements begin at the start of a line; what belongs to one is indented, or closes a bracket. */
const statements = (text: string): string[] => text.split(/\n(?=[a-z])/)

/** Without comments, and without literals except the paths of imports. */
const plain = (text: string) =>
  text
    .replaceAll(/\/\*[\s\S]*?\*\//g, '')
    .replaceAll(/^\s*\/\/.*$/gm, '')
    .replaceAll(/(?<!from )'(?:[^'\\\n]|\\.)*'|(?<!from )"(?:[^"\\\n]|\\.)*"/g, "''")

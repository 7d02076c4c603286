import { registry } from '../registry.ts'

/** Advice on why `module` could not be imported, where Node's own message gives none. */
export function loadAdvice(error: unknown, module: string): string {
  if (!(error instanceof Error)) return ''
  if (lacksBuiltin(error))
    return `; this worker has Node ${process.version} (${process.execPath}), which does not have it; use a newer Node there`
  // Code for other machines was compiled before it was sent, so a compiler would not help.
  if (registry.bundled || !needsCompiler(error, module) || hasCompiler()) return ''
  return '; Node only strips types from TypeScript. Enums, parameter properties, decorators, imports without their extension, aliases of tsconfig.json and types that are imported without `import type` need a compiler: install tsx, and start the program with `node --import tsx` (a test runner with NODE_OPTIONS="--import tsx"). Workers then use it too'
}

const lacksBuiltin = ({ message }: Error) =>
  /^The requested module 'node:[\w/]{1,40}' does not provide|^No such built-in module: /.test(message)

function needsCompiler(error: Error & { code?: unknown }, module: string): boolean {
  const { code, message } = error
  switch (code) {
    case 'ERR_UNSUPPORTED_TYPESCRIPT_SYNTAX':
    case 'ERR_UNSUPPORTED_NODE_MODULES_TYPE_STRIPPING':
      return true
    case 'ERR_INVALID_TYPESCRIPT_SYNTAX':
      return false
    case 'ERR_UNKNOWN_FILE_EXTENSION':
      return /^Unknown file extension "\.[cm]?tsx?"/.test(message)
    // The file imports something under another name than it has on disk.
    case 'ERR_MODULE_NOT_FOUND':
    case 'ERR_UNSUPPORTED_DIR_IMPORT':
      return isTypeScript(message)
    default:
      // A decorator, or a type imported as a value. V8 shows the file above the message, or not at all.
      return error.name === 'SyntaxError' && [module, firstLine(error.stack)].some(isTypeScript)
  }
}

const isTypeScript = (text: string) => /\.[cm]?tsx?$/.test(text)
const firstLine = (stack = '') => stack.split('\n', 1)[0]!.replace(/:\d+$/, '')

const hasCompiler = () =>
  [...process.execArgv, process.env.NODE_OPTIONS ?? ''].some((flags) =>
    /(^|[\s=]|node_modules\/)(tsx|ts-node|@swc-node|@oxc-node|esbuild-register)\b/.test(flags),
  )

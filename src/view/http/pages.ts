import { readFile } from 'node:fs/promises'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { extname, join } from 'node:path'
import { Problem } from '../../network/http-problem.ts'
import { ownPackage } from '../../own-package.ts'
import { NOT_STORED, SAFE_HEADERS } from './answers.ts'

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.ico': 'image/x-icon',
  '.json': 'application/json',
  '.map': 'application/json',
}

/** The folder of the built page. */
export const PAGE_FOLDER = join(ownPackage.folder, 'dist', 'web')

/** The path of a file of the page: `assets/NAME` or `NAME`. It cannot leave the folder. */
const FILE = /^\/((?:assets\/)?[\w-][\w.-]*\.\w+)$/

export const isFile = (path: string): boolean => FILE.test(path)

/** Answers with a file. Names in `assets/` contain a hash of the content, so browsers may keep them. */
export async function answerFile(request: IncomingMessage, response: ServerResponse, path: string): Promise<void> {
  const [, name = ''] = FILE.exec(path) ?? []
  const type = TYPES[extname(name)]
  const content = type === undefined ? undefined : await contentOf(name)
  if (content === undefined) throw new Problem(404, 'NOT_FOUND', 'not found')
  const cache = name.startsWith('assets/') ? 'public, max-age=31536000, immutable' : 'no-cache'
  answer(request, response, 200, content, { 'content-type': type!, 'cache-control': cache })
}

/** Answers with the page. */
export async function answerPage(
  request: IncomingMessage,
  response: ServerResponse,
  cookie: string | undefined,
): Promise<void> {
  const content = await contentOf('index.html')
  const headers = { ...NOT_STORED, ...(cookie !== undefined && { 'set-cookie': cookie }) }
  if (content === undefined) return answerText(request, response, 503, MISSING, headers)
  answer(request, response, 200, content, { ...headers, 'content-type': TYPES['.html']! })
}

const MISSING = `the page of the viewer is not built: ${join('dist', 'web', 'index.html')} is missing. In a checkout of manyworlds, run \`npm run setup\`; otherwise install the package again`

/** A page without anything that needs scripts or styles. */
export function answerText(
  request: IncomingMessage,
  response: ServerResponse,
  status: number,
  text: string,
  headers: Readonly<Record<string, string>> = NOT_STORED,
): void {
  answer(request, response, status, `${text}\n`, { ...headers, 'content-type': 'text/plain; charset=utf-8' })
}

function answer(
  { method }: IncomingMessage,
  response: ServerResponse,
  status: number,
  content: string | Buffer,
  headers: Readonly<Record<string, string>>,
): void {
  response.writeHead(status, { ...SAFE_HEADERS, ...headers, 'content-length': Buffer.byteLength(content) })
  response.end(method === 'HEAD' ? undefined : content)
}

async function contentOf(name: string): Promise<Buffer | undefined> {
  try {
    return await readFile(join(PAGE_FOLDER, name))
  } catch (error) {
    if (['ENOENT', 'ENOTDIR', 'EISDIR'].includes((error as NodeJS.ErrnoException).code ?? '')) return undefined
    throw error
  }
}

import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { ManyworldsError } from '../../errors.ts'
import { PAGE_FOLDER } from '../http/pages.ts'

/** The page of the viewer as one file, into which the data of a report is inserted. */
export interface PageFile {
  /** The size of the page without data. */
  readonly bytes: number
  /** `data`: Base64. */
  with(data: string): string
}

const SCRIPT = /<script\b[^>]*\bsrc="\.\/([\w./-]+)"[^>]*><\/script>/
const STYLE = /<link\b[^>]*\brel="stylesheet"[^>]*\bhref="\.\/([\w./-]+)"[^>]*>/

/**
 * Puts the script and the style sheet into the page. Its Content-Security-Policy allows exactly these two, by their
 * hashes, and no connections: whatever the data contains, no other code can run, and no data can be sent anywhere.
 */
export async function pageFile(): Promise<PageFile> {
  const html = await page('index.html')
  const [scriptTag, scriptName = ''] = SCRIPT.exec(html) ?? []
  const [styleTag, styleName = ''] = STYLE.exec(html) ?? []
  if (scriptTag === undefined || styleTag === undefined) throw notBuilt(new Error('index.html has no script or style'))
  // Inside a script element, these would end the script or start a comment.
  const script = (await page(scriptName)).replaceAll('</script', '<\\/script').replaceAll('<!--', '\\x3c!--')
  const style = (await page(styleName)).replaceAll('</style', '<\\/style')
  const policy = `default-src 'none'; script-src '${hashOf(script)}'; style-src '${hashOf(style)}'; img-src data:; base-uri 'none'; form-action 'none'`
  const [head, tail] = html
    .replace(scriptTag, '')
    .replace(styleTag, () => `<style>${style}</style>`)
    .replace('<head>', () => `<head>\n    <meta http-equiv="Content-Security-Policy" content="${policy}" />`)
    .split('</body>') as [string, string]
  const before = `${head}<script type="application/json" id="report">`
  const after = `</script>\n    <script type="module">${script}</script>\n  </body>${tail}`
  return { bytes: Buffer.byteLength(before) + Buffer.byteLength(after), with: (data) => before + data + after }
}

const hashOf = (text: string) => `sha256-${createHash('sha256').update(text).digest('base64')}`

async function page(name: string): Promise<string> {
  try {
    return await readFile(join(PAGE_FOLDER, name), 'utf8')
  } catch (cause) {
    throw notBuilt(cause)
  }
}

const notBuilt = (cause: unknown) =>
  new ManyworldsError(
    'STORE_FAILED',
    `the page of the viewer is not built: ${join('dist', 'web')} is incomplete. In a checkout of manyworlds, run \`npm run setup\`; otherwise install the package again`,
    { cause },
  )

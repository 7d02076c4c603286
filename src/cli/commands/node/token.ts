import { writeFileSync } from 'node:fs'
import { ManyworldsError } from '../../../errors.ts'
import { newToken } from '../../../network/token.ts'
import { log } from './log.ts'

/** `manyworlds node token`: writes a new token to stdout or to a file. */
export function makeToken(out: string | undefined): number {
  const token = newToken()
  if (out === undefined) {
    process.stdout.write(`${token}\n`)
    return 0
  }
  try {
    // Never overwrite a token that may be in use.
    writeFileSync(out, `${token}\n`, { mode: 0o600, flag: 'wx' })
  } catch (cause) {
    const { code, message } = cause as NodeJS.ErrnoException
    const why = code === 'EEXIST' ? 'already exists and is not overwritten' : `cannot be written: ${message}`
    throw new ManyworldsError('CONFIG_INVALID', `--out: ${out} ${why}`, { cause })
  }
  log(`wrote a new token to ${out}; copy it to the nodes and to the driver`)
  return 0
}

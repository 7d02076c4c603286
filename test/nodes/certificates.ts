import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { generate } from 'selfsigned'

export interface Identity {
  /** Paths of PEM files. */
  readonly cert: string
  readonly key: string
}

/** An authority, and what it has signed: made for one test, in its folder. */
export async function makeAuthority(folder: string, name: string) {
  const ca = await generate([{ name: 'commonName', value: name }], {
    keyType: 'ec',
    algorithm: 'sha256',
    extensions: [
      { name: 'basicConstraints', cA: true, critical: true },
      { name: 'keyUsage', keyCertSign: true, digitalSignature: true, critical: true },
    ],
  })
  const path = join(folder, `${name}.ca.pem`)
  writeFileSync(path, ca.cert)
  return {
    path,
    /** A certificate for a machine of this name or address. */
    async sign(subject: string): Promise<Identity> {
      const isAddress = /^[\d.]+$/.test(subject)
      const signed = await generate([{ name: 'commonName', value: subject }], {
        keyType: 'ec',
        algorithm: 'sha256',
        ca: { key: ca.private, cert: ca.cert },
        extensions: [
          { name: 'basicConstraints', cA: false },
          { name: 'subjectAltName', altNames: [isAddress ? { type: 7, ip: subject } : { type: 2, value: subject }] },
        ],
      })
      const files = { cert: join(folder, `${subject}.crt`), key: join(folder, `${subject}.key`) }
      writeFileSync(files.cert, signed.cert)
      writeFileSync(files.key, signed.private)
      return files
    },
  }
}

import { appendFileSync } from 'node:fs'
import { defineAgent } from '../../dist/index.js'

const blockForever = () => void Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)

/** Ends its worker, which then does not end. */
export const neverEnds = defineAgent({
  name: 'never-ends',
  run: ({ hang, file }: { hang: 'listener' | 'shutdown'; file: string }) => {
    appendFileSync(file, `${process.pid}`)
    if (hang === 'listener') process.on('exit', blockForever)
    else (process as unknown as { reallyExit: () => void }).reallyExit = blockForever
    process.exit(3)
  },
})

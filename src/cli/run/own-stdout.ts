import { Writable } from 'node:stream'

/** With `--json`, stdout is ours: what the script prints goes to stderr, so that every line of stdout is JSON. */
export function takeStdout(): NodeJS.WritableStream {
  const write = process.stdout.write.bind(process.stdout)
  process.stdout.write = process.stderr.write.bind(process.stderr) as typeof process.stdout.write
  return new Writable({
    decodeStrings: false,
    write(chunk: string, _encoding, done) {
      write(chunk, () => done())
    },
  })
}

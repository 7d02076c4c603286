/** Newline-delimited JSON, line by line. */
export async function* jsonLines(body: ReadableStream<Uint8Array>): AsyncGenerator<unknown> {
  const reader = body.pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, Uint8Array>).getReader()
  const parts: string[] = []
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) break
      let from = 0
      for (let end = value.indexOf('\n'); end >= 0; end = value.indexOf('\n', from)) {
        parts.push(value.slice(from, end))
        const line = parts.join('')
        parts.length = 0
        from = end + 1
        if (line !== '') yield JSON.parse(line)
      }
      parts.push(value.slice(from))
    }
    const last = parts.join('')
    if (last !== '') yield JSON.parse(last)
  } finally {
    await reader.cancel().catch(() => {})
  }
}

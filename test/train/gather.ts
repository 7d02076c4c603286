/** All of a stream. */
export async function gather<T>(stream: AsyncIterable<T>): Promise<T[]> {
  const list: T[] = []
  for await (const one of stream) list.push(one)
  return list
}

/**
 * Draws the numbers below `count` in random order, each once. A Fisher-Yates shuffle that stores only the swapped
 * entries, so drawing k numbers costs O(k), whatever `count` is.
 */
export function* drawDistinct(count: number, random: () => number): Generator<number, undefined> {
  const moved = new Map<number, number>()
  for (let last = count - 1; last >= 0; last--) {
    const place = Math.floor(random() * (last + 1))
    const drawn = moved.get(place) ?? place
    moved.set(place, moved.get(last) ?? last)
    moved.delete(last)
    yield drawn
  }
}

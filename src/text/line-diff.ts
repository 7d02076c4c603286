/** Unchanged lines shown around a change. */
const CONTEXT = 3
/**
 * With more pairs of lines, the whole middle is shown as replaced: comparing takes time proportional to the product of
 * both lengths.
 */
const MOST_PAIRS = 4_000_000

type Change = { readonly sign: ' ' | '-' | '+'; readonly line: string }

/** The difference of two texts in the format of `diff -u`; empty if they are equal. */
export function unifiedDiff(
  a: string,
  b: string,
  { from, to }: { readonly from: string; readonly to: string },
): string {
  const changes = lineChanges(linesOf(a), linesOf(b))
  if (changes.every(({ sign }) => sign === ' ')) return ''
  return [`--- ${from}`, `+++ ${to}`, ...hunks(changes)].map((line) => `${line}\n`).join('')
}

const linesOf = (text: string): string[] => {
  const lines = text.split('\n')
  return lines.at(-1) === '' ? lines.slice(0, -1) : lines
}

/** The fewest removed and added lines that turn `a` into `b`. Removed lines come before added ones. */
export function lineChanges(a: readonly string[], b: readonly string[]): Change[] {
  let begin = 0
  while (begin < a.length && begin < b.length && a[begin] === b[begin]) begin++
  let end = 0
  while (end < a.length - begin && end < b.length - begin && a.at(-1 - end) === b.at(-1 - end)) end++
  const same = (lines: readonly string[]): Change[] => lines.map((line) => ({ sign: ' ', line }))
  const middle = middleChanges(a.slice(begin, a.length - end), b.slice(begin, b.length - end))
  return [...same(a.slice(0, begin)), ...middle, ...same(a.slice(a.length - end))]
}

/** Computes the longest common subsequence. */
function middleChanges(a: readonly string[], b: readonly string[]): Change[] {
  const removed = (line: string): Change => ({ sign: '-', line })
  const added = (line: string): Change => ({ sign: '+', line })
  if (a.length * b.length > MOST_PAIRS) return [...a.map(removed), ...b.map(added)]
  const width = b.length + 1
  const longest = new Uint32Array((a.length + 1) * width)
  for (let i = a.length - 1; i >= 0; i--)
    for (let j = b.length - 1; j >= 0; j--)
      longest[i * width + j] =
        a[i] === b[j]
          ? longest[(i + 1) * width + j + 1]! + 1
          : Math.max(longest[(i + 1) * width + j]!, longest[i * width + j + 1]!)
  const changes: Change[] = []
  let [i, j] = [0, 0]
  while (i < a.length || j < b.length)
    if (i < a.length && j < b.length && a[i] === b[j]) {
      changes.push({ sign: ' ', line: a[i]! })
      i++
      j++
    } else if (j === b.length || (i < a.length && longest[(i + 1) * width + j]! >= longest[i * width + j + 1]!))
      changes.push(removed(a[i++]!))
    else changes.push(added(b[j++]!))
  return changes
}

function* hunks(changes: readonly Change[]): Generator<string> {
  let [lineA, lineB] = [1, 1]
  for (let at = 0; at < changes.length; ) {
    if (!changes.slice(at, at + CONTEXT + 1).some(({ sign }) => sign !== ' ')) {
      lineA++
      lineB++
      at++
      continue
    }
    const hunk = changes.slice(at, hunkEnd(changes, at))
    const [countA, countB] = [count(hunk, '+'), count(hunk, '-')]
    yield `@@ -${place(lineA, countA)} +${place(lineB, countB)} @@`
    for (const { sign, line } of hunk) yield `${sign}${line}`
    lineA += countA
    lineB += countB
    at += hunk.length
  }
}

/** The end of a hunk: the first place after which there is no change for twice the context. */
function hunkEnd(changes: readonly Change[], begin: number): number {
  let last = begin
  for (let at = begin; at < changes.length && at <= last + 2 * CONTEXT + 1; at++)
    if (changes[at]!.sign !== ' ') last = at
  // The hunk may start with context, so its first change is at most that far away.
  return Math.min(changes.length, last + CONTEXT + 1)
}

const count = (hunk: readonly Change[], without: Change['sign']) => hunk.filter(({ sign }) => sign !== without).length
/** An empty hunk is positioned after the line before it. */
const place = (line: number, lines: number) => (lines === 1 ? `${line}` : `${lines === 0 ? line - 1 : line},${lines}`)

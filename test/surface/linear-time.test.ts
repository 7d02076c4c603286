import { expect, it } from 'vitest'
import { parseAction } from '../../src/agents/parse-action.ts'
import type { Bundle } from '../../src/bundle/index.ts'
import { explainLoadFailure, failedExternal } from '../../src/bundle/load-hint.ts'
import { remapStack } from '../../src/bundle/remap-stack.ts'
import { parseDuration } from '../../src/cli/frame/typed-value.ts'
import { CsvParser } from '../../src/data/csv-parser.ts'
import { JsonlParser } from '../../src/data/jsonl-parser.ts'
import { normalizeQuestion } from '../../src/data/question.ts'
import type { RowParser } from '../../src/data/text-rows.ts'
import { nearest } from '../../src/did-you-mean.ts'
import { isFinal, lossOf } from '../../src/engines/ray/error-advice.ts'
import { versionMismatch } from '../../src/engines/ray/versions.ts'
import { withoutStack } from '../../src/engines/spark/connect/errors.ts'
import { adviceFor as sparkCure, whatFailed } from '../../src/engines/spark/error-advice.ts'
import { WatchdogReader } from '../../src/engines/watchdog-reader.ts'
import { crashError, judge } from '../../src/executor/suspects.ts'
import type { WorkerHandle } from '../../src/executor/worker-handle.ts'
import { DRIVER_UNREACHABLE } from '../../src/host/slot-instructions.ts'
import { checkReply } from '../../src/models/check-reply.ts'
import { failureOf } from '../../src/models/failures.ts'
import { completionIn } from '../../src/models/read-completion.ts'
import { parseAddress } from '../../src/network/address.ts'
import { tlsWords } from '../../src/network/error-words.ts'
import { parseHostMessage } from '../../src/network/host-messages.ts'
import { CursorLine } from '../../src/progress/cursor-line.ts'
import { checkWorkerMessage } from '../../src/protocol/check-messages.ts'
import { readPacked } from '../../src/protocol/read-packed.ts'
import { messageLines } from '../../src/text/conversation.ts'
import { errorLines } from '../../src/text/error-lines.ts'
import { escapeControls, firstLine } from '../../src/text/escape-controls.ts'
import { painter } from '../../src/text/paint.ts'
import { valueLines } from '../../src/text/value-lines.ts'
import { cut } from '../../src/text/width.ts'
import { checkStep } from '../../src/trajectory/packed-step.ts'
import { errorItem } from '../../src/worker/error-item.ts'

/**
 * Whatever sees text of others takes time that grows with its length, and no faster: error texts, stacks, what clusters
 * print, what a worker writes. Compared is the time for a text with the time for one that is four times as long.
 */

const SHA = 'ab'.repeat(32)
/** Begins, and pieces that are said again and again: what expressions begin to match, and then do not. */
const PIECES: readonly string[] = [
  ...[
    'a',
    '9',
    '9.',
    ' ',
    '\t',
    '\n',
    '/',
    '//',
    '(',
    ')',
    ':',
    ':1',
    ':1:',
    '.',
    '!',
    '-',
    '"',
    "'",
    '{',
    '[',
    '}',
    ']',
  ],
  ...[
    'at ',
    '    at ',
    '\n    at x (',
    'at x(',
    'ab',
    `/${SHA}`,
    `/${SHA}/`,
    `${SHA}/`,
    `/${SHA}/a:1:`,
    'file://',
    '\x1b[',
    ';',
  ],
  ...[
    'alert ',
    'Version mismatch',
    'Version mismatch Ray: 1 ',
    'Ray: 1 Python: ',
    'NODE_NOT_FOUND on ',
    'é',
    '👩‍👩‍👧 ',
    '\u0301',
  ],
  ...[
    `${DRIVER_UNREACHABLE} {`,
    "Cannot find module 'a",
    'Caused by: ',
    '... 1 more',
    'Error: ',
    '\r\n',
    '\\',
    ',',
    '=',
    '%',
    '%2',
  ],
  ...['context ', 'maximum ', 'input ', 'content', '<', '<a', 'data: ', 'data: {}\n', '\n\n'],
  ...['use_tool[', 'use_tool[a] with b[', 'b[', 'b[c] and ', '```json\n{', '{"tool":'],
]
const BEGINS: readonly string[] = [
  '',
  'Error: ',
  '    at ',
  'Version mismatch',
  '!',
  '[',
  '"',
  '/',
  `/${SHA}/`,
  'use_tool[a] with ',
]

const layout = { width: 80, paint: painter(false), full: true }
const bundles = new Map([[SHA, { sha256: SHA, modules: new Map(), code: new Uint8Array() } as unknown as Bundle]])
const quiet = (run: () => unknown) => {
  try {
    run()
  } catch {
    // It is not what was expected, and says so in time.
  }
}

function* rowsOf(parser: RowParser, text: string): Generator<unknown> {
  for (let at = 0; at < text.length; at += 100) yield* parser.push(Buffer.from(text.slice(at, at + 100)))
  yield* parser.end()
}

const READERS: Readonly<Record<string, (text: string) => void>> = {
  'a stack from another machine': (text) => remapStack(text, bundles),
  'an error to be shown': (text) => errorLines({ code: 'X', name: text, message: text, stack: text }, layout),
  'a value to be shown': (text) => valueLines([text], layout),
  'a message of a conversation': (text) => messageLines({ role: text, content: text }, layout.paint, () => []),
  'text for a terminal': (text) => [escapeControls(text), firstLine(text), cut(text, 80)],
  'the line of the cursor': (text) => {
    const line = new CursorLine()
    line.wrote(text)
    line.state(80)
  },
  'an error that was thrown': (text) => {
    errorItem('TASK_THREW', Object.assign(new Error(text), { name: text, stack: text }), ['OPENAI_API_KEY'])
    errorItem('TASK_THREW', text)
    errorItem('TASK_THREW', { message: text })
  },
  'what Ray says': (text) => [lossOf(text), isFinal(text), versionMismatch(text)],
  'what Spark says': (text) => [sparkCure(text), whatFailed(text), withoutStack(text)],
  'why code could not be loaded': (text) => {
    const failure = { loaded: false, reason: 'threw', message: text, stack: text } as const
    explainLoadFailure(failure, 'key', '/folder')
    explainLoadFailure({ reason: 'exited', how: 'ended', stderr: text }, 'key', '/folder')
    failedExternal(failure, ['sharp'], '/folder')
  },
  'what TLS says': (text) => tlsWords(text),
  'an address': (text) => parseAddress(text),
  'a duration': (text) => quiet(() => parseDuration(text, '--timeout')),
  'a word that was meant to be another': (text) => nearest(text, ['timeout', text.slice(1), `${text}x`]),
  'what a watchdog says': (text) => {
    const reader = new WatchdogReader()
    for (let at = 0; at < text.length; at += 1000) reader.hear(text.slice(at, at + 1000))
    return reader.lastWords
  },
  'the last words of a worker': (text) => {
    const worker = { leases: new Map([[1, { id: 1, entry: { options: {} } }]]) } as unknown as WorkerHandle
    judge(worker, { code: 1, signal: null, lastWords: text })
    crashError({ code: 1, signal: null, stderr: text, reason: text })
  },
  'a message of a host': (text) => parseHostMessage(Buffer.from(text)),
  'a message of a worker': (text) => {
    checkWorkerMessage({ type: text })
    checkWorkerMessage({ type: 'stray', error: { code: text, name: text, message: text, stack: text } })
  },
  // Without stacks: a text of empty lines is a million errors.
  'a line of a data set': (text) => withoutStacks(() => [...rowsOf(new JsonlParser({ maxRowBytes: 1e6 }), text)]),
  'rows of a CSV file': (text) => [...rowsOf(new CsvParser({ maxRowBytes: 1e6 }, ',', ['a']), text)],
  'a question': (text) => normalizeQuestion(text),
  'a step': (text) => quiet(() => checkStep([0, text])),
  'an action of a model': (text) => parseAction(text),
  'an error of a model server': (text) => {
    for (const status of [400, 403, 429, 500]) {
      failureOf({ status, headers: { 'retry-after': text, location: text }, body: text })
      failureOf({ status, headers: {}, body: JSON.stringify({ error: { message: text, code: text, type: text } }) })
    }
    checkReply({ status: 200, headers: {}, body: text })
  },
  'a reply of a model': (text) => {
    completionIn(text)
    completionIn(`data: ${text}`)
    completionIn(JSON.stringify({ choices: [{ message: { content: text } }] }))
  },
  'an answer': (text) => quiet(() => readPacked(new String(text))),
}

const CHARS = 4 * 1024
/** Where it takes no longer than this, nobody minds how it grows. */
const SHORT_MS = 25

function withoutStacks(run: () => void): void {
  const { stackTraceLimit } = Error
  Error.stackTraceLimit = 0
  try {
    run()
  } finally {
    Error.stackTraceLimit = stackTraceLimit
  }
}

function cpuMs(run: () => void): number {
  const before = process.cpuUsage().user
  run()
  return (process.cpuUsage().user - before) / 1000
}

/** The least of a few: what else this process does comes on top. */
const least = (run: () => void) => Math.min(cpuMs(run), cpuMs(run), cpuMs(run))

it.each(Object.keys(READERS))(
  '%s is read in a time that grows with its length',
  (name) => {
    const read = READERS[name]!
    for (const begin of BEGINS)
      for (const piece of PIECES) {
        const text = (chars: number) => begin + piece.repeat(Math.ceil(chars / piece.length))
        const long = text(4 * CHARS)
        if (cpuMs(() => read(long)) < SHORT_MS || cpuMs(() => read(long)) < SHORT_MS) continue
        const short = text(CHARS)
        const measure = () =>
          least(() => read(long)) /
          Math.max(
            1,
            least(() => read(short)),
          )
        let growth = measure()
        // The collector of garbage may choose the worst moment.
        for (let again = 0; growth >= 10 && again < 3; again++) growth = Math.min(growth, measure())
        // Four times as long takes four times as long; if it were quadratic, sixteen times.
        expect(growth, `${JSON.stringify(begin)}, then ${JSON.stringify(piece)} again and again`).toBeLessThan(10)
      }
  },
  300_000,
)

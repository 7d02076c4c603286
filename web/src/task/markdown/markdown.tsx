import { fromMarkdown } from 'mdast-util-from-markdown'
import { gfmFromMarkdown } from 'mdast-util-gfm'
import { gfm } from 'micromark-extension-gfm'
import type { ComponentChildren } from 'preact'
import { useEffect, useMemo, useState } from 'preact/hooks'
import { visible } from '../../parts/safe-text.tsx'
import { Code, draw } from './draw.tsx'
import { type Piece, piecesOf } from './pieces.ts'
import './markdown.css'

/** The longest time of parsing before the rest of the page gets its turn. */
const SLICE_MS = 25
/** After this time, the rest of a text is shown as plain text. */
const MOST_MS = 2000

const OPTIONS = { extensions: [gfm()], mdastExtensions: [gfmFromMarkdown()] }

/** A text as Markdown. */
export function Markdown({ text }: { readonly text: string }) {
  const work = useMemo(() => new Work(piecesOf(text)), [text])
  const [, redraw] = useState(0)
  work.go()
  useEffect(() => {
    if (work.isDone) return
    const timer = setInterval(() => {
      work.go()
      redraw((times) => times + 1)
      if (work.isDone) clearInterval(timer)
    }, 0)
    return () => clearInterval(timer)
  }, [work])
  return (
    <div class="md">
      {work.drawn}
      {work.rest.map((piece) => drawPlain(piece))}
    </div>
  )
}

/** Draws pieces, a few at a time. */
class Work {
  readonly #pieces: readonly Piece[]
  readonly drawn: ComponentChildren[] = []
  #spentMs = 0

  constructor(pieces: readonly Piece[]) {
    this.#pieces = pieces
  }

  get rest(): readonly Piece[] {
    return this.#pieces.slice(this.drawn.length)
  }

  get isDone(): boolean {
    return this.drawn.length === this.#pieces.length || this.#spentMs > MOST_MS
  }

  go(): void {
    const from = performance.now()
    let ms = 0
    while (!this.isDone && ms < SLICE_MS) {
      this.drawn.push(drawPiece(this.#pieces[this.drawn.length]!))
      ms = performance.now() - from
    }
    this.#spentMs += ms
  }
}

function drawPiece(piece: Piece): ComponentChildren {
  if (piece.kind === 'code') return <Code text={piece.text} about={piece.about} />
  if (piece.kind === 'plain') return drawPlain(piece)
  try {
    return draw(fromMarkdown(piece.text, OPTIONS))
  } catch {
    // The parser may overflow the stack. The text must still be shown.
    return drawPlain(piece)
  }
}

const drawPlain = ({ text }: Piece) => <p class="md-plain">{visible(text)}</p>

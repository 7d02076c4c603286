import { batch, signal } from '@preact/signals'
import type { SearchHit } from '../../../src/view/api.ts'
import type { Source } from '../source/source.ts'

const TYPING_MS = 350
/** The shortest time between two redraws while hits arrive. */
const REDRAW_MS = 150

/** A search in the texts of a run: inputs, answers, errors, steps and logs. A new text cancels the one before. */
export class TextSearch {
  readonly #source: Source
  readonly #run: string
  readonly text = signal('')
  readonly hits = signal<readonly SearchHit[]>([])
  readonly tasks = signal<ReadonlySet<number> | undefined>(undefined)
  readonly searched = signal<{ readonly searched: number; readonly of: number } | undefined>(undefined)
  readonly isDone = signal(false)
  readonly isLimited = signal(false)
  readonly error = signal<unknown>(undefined)
  #ending = new AbortController()
  #timer: ReturnType<typeof setTimeout> | undefined

  constructor(source: Source, run: string) {
    this.#source = source
    this.#run = run
  }

  /** Starts when the reader has stopped typing. An empty text ends the search. */
  start(text: string): void {
    if (text === this.text.value) return
    this.stop()
    batch(() => {
      this.text.value = text
      this.hits.value = []
      this.tasks.value = text === '' ? undefined : new Set()
      this.searched.value = undefined
      this.isDone.value = this.isLimited.value = false
      this.error.value = undefined
    })
    if (text !== '') this.#timer = setTimeout(() => void this.#search(text), TYPING_MS)
  }

  /** Stops the search. An unfinished search starts from the beginning when it is requested again. */
  stop(): void {
    clearTimeout(this.#timer)
    this.#ending.abort()
    this.#ending = new AbortController()
    if (!this.isDone.value) this.text.value = ''
  }

  async #search(text: string): Promise<void> {
    const { signal } = this.#ending
    const hits: SearchHit[] = []
    const tasks = new Set<number>()
    let shownAt = 0
    let shownHits = 0
    const show = () => {
      shownAt = performance.now()
      if (hits.length === shownHits) return
      shownHits = hits.length
      batch(() => {
        this.hits.value = [...hits]
        this.tasks.value = new Set(tasks)
      })
    }
    try {
      for await (const line of this.#source.search(this.#run, text, signal)) {
        if (signal.aborted) return
        if (line.kind === 'hit') {
          hits.push(line.hit)
          tasks.add(line.hit.task)
        } else if (line.kind === 'progress') this.searched.value = line
        else this.isLimited.value = line.limited
        if (hits.length === 1 || performance.now() - shownAt > REDRAW_MS) show()
      }
      show()
      this.isDone.value = true
    } catch (error) {
      if (!signal.aborted) this.error.value = error
    }
  }
}

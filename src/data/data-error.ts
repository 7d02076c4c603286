import { ManyworldsError } from '../errors.ts'

/** The location of a problem in a data file. */
export interface DataPlace {
  readonly file: string
  /** The line of the file, from 1. In a Parquet file: the row. */
  readonly line?: number | undefined
  /** The column in that line, in characters from 1. */
  readonly column?: number | undefined
}

/** A data file cannot be read, or one of its rows is malformed. */
export class DataError extends ManyworldsError {
  readonly file: string
  readonly line: number | undefined
  readonly column: number | undefined

  constructor(
    code: 'DATA_INVALID' | 'DATA_UNREADABLE',
    place: DataPlace,
    what: string,
    options?: { readonly cause?: unknown },
  ) {
    super(code, `${placeText(place)}: ${what}`, options)
    this.file = place.file
    this.line = place.line
    this.column = place.column
  }

  override toJSON(): object {
    const { file, line, column } = this
    return { ...super.toJSON(), file, line, column }
  }
}

/** `questions.jsonl:7001:26`, which editors and terminals open at that position. */
export const placeText = ({ file, line, column }: DataPlace): string =>
  [file, line, column].filter((part) => part !== undefined).join(':')

/** Quotes a text for a message. Long texts are cut, because data may contain anything. */
export const shortly = (text: string, chars = 60): string =>
  JSON.stringify(text.length > chars ? `${text.slice(0, chars)}…` : text)

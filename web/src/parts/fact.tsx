import type { ComponentChildren } from 'preact'
import { SafeText } from './safe-text.tsx'

interface Props {
  readonly name: string
  readonly hint?: string | undefined
  /** Either a text or children. */
  readonly text?: string
  readonly children?: ComponentChildren
}

/** A name with a figure below it, for a list of the class `facts`. */
export const Fact = ({ name, hint, text, children }: Props) => (
  <div title={hint}>
    <dt>{name}</dt>
    <dd>{text === undefined ? children : <SafeText text={text} />}</dd>
  </div>
)

/** The script of a run or a training, as a path or a file URL. */
export function ScriptFact({ script }: { readonly script: string }) {
  const path = script.replace(/^file:\/\//, '')
  const parts = path.split(/[\\/]/)
  return <Fact name="script" text={parts.length > 3 ? `…/${parts.slice(-2).join('/')}` : path} hint={path} />
}

import { createContext } from 'preact'
import { useContext } from 'preact/hooks'
import type { Source } from '../source/source.ts'

export const SourceContext = createContext<Source | undefined>(undefined)

export function useSource(): Source {
  return useContext(SourceContext)!
}

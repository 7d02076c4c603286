import { useEffect } from 'preact/hooks'
import { hrefOf } from '../route.ts'
import { dateTime } from '../text/quantities.ts'
import { SafeText } from './safe-text.tsx'
import { useSource } from './source-context.ts'
import { ThemeButton } from './theme-button.tsx'

/** Ids may be of any length. */
const MAX_TITLE = 120

/** The path to the page, starting with the list of runs. The last one is the page itself. */
export type Crumbs = readonly { readonly text: string; readonly href?: string }[]

export function TopBar({ crumbs }: { readonly crumbs: Crumbs }) {
  const { report, start } = useSource()
  const page = crumbs.map(({ text }) => text).join(' / ')
  useEffect(() => {
    document.title = page === '' ? 'manyworlds' : `${page.slice(0, MAX_TITLE)} · manyworlds`
  }, [page])
  return (
    <>
      <header class="top">
        <a class="brand" href={hrefOf([])}>
          manyworlds
        </a>
        <nav class="crumbs" aria-label="Where you are">
          {crumbs.map(({ text, href }) => (
            <>
              <span class="dim" aria-hidden="true">
                /
              </span>
              {href === undefined ? (
                <span class="mono" title={text}>
                  <SafeText text={text} />
                </span>
              ) : (
                <a class="mono" href={href} title={text}>
                  <SafeText text={text} />
                </a>
              )}
            </>
          ))}
        </nav>
        <ThemeButton />
      </header>
      {report && (
        <div class="notice" role="note">
          A report, made {dateTime(report.madeAt)} with manyworlds {start.manyworlds}.
          {report.leftOut.length > 0 && ` Left out: ${report.leftOut.join('; ')}.`}
        </div>
      )}
    </>
  )
}

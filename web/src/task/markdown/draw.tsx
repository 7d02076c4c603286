import type { Nodes } from 'mdast'
import type { ComponentChildren } from 'preact'
import { visible } from '../../parts/safe-text.tsx'
import { ScrollRegion } from '../../parts/scroll-region.tsx'

/**
 * Draws a Markdown tree as elements. HTML is shown as text; links lead out of the page and only to the web or to mail; images are
 * never loaded, because their addresses could carry data away.
 */
export function draw(node: Nodes): ComponentChildren {
  switch (node.type) {
    case 'root':
      return drawAll(node.children)
    case 'text':
      return visible(node.value)
    case 'html':
      return <code class="md-html">{visible(node.value)}</code>
    case 'paragraph':
      return <p>{drawAll(node.children)}</p>
    case 'heading':
      return <Heading depth={node.depth}>{drawAll(node.children)}</Heading>
    case 'strong':
      return <strong>{drawAll(node.children)}</strong>
    case 'emphasis':
      return <em>{drawAll(node.children)}</em>
    case 'delete':
      return <del>{drawAll(node.children)}</del>
    case 'inlineCode':
      return <code>{visible(node.value)}</code>
    case 'code':
      return <Code text={node.value} about={`${node.lang ?? ''} ${node.meta ?? ''}`.trim()} />
    case 'blockquote':
      return <blockquote>{drawAll(node.children)}</blockquote>
    case 'list':
      return node.ordered ? (
        <ol start={node.start ?? 1}>{drawAll(node.children)}</ol>
      ) : (
        <ul>{drawAll(node.children)}</ul>
      )
    case 'listItem':
      return (
        <li class={typeof node.checked === 'boolean' ? 'md-check' : undefined}>
          {typeof node.checked === 'boolean' && (
            <span role="img" aria-label={node.checked ? 'done' : 'open'}>
              {node.checked ? '☑ ' : '☐ '}
            </span>
          )}
          {node.spread ? drawAll(node.children) : node.children.map(drawTight)}
        </li>
      )
    case 'break':
      return <br />
    case 'thematicBreak':
      return <hr />
    case 'link':
      return (
        <Link url={node.url} about={node.title}>
          {drawAll(node.children)}
        </Link>
      )
    case 'image':
      return <Link url={node.url}>{visible(`image: ${node.alt || node.url}`)}</Link>
    case 'linkReference':
    case 'imageReference':
      return visible(`[${node.type === 'linkReference' ? plain(node.children) : (node.alt ?? '')}]`)
    case 'definition':
      return <p class="dim">{visible(`[${node.label ?? node.identifier}]: ${node.url}`)}</p>
    case 'footnoteReference':
      return <sup>{visible(node.label ?? node.identifier)}</sup>
    case 'footnoteDefinition':
      return (
        <div class="md-footnote">
          <sup>{visible(node.label ?? node.identifier)}</sup>
          {drawAll(node.children)}
        </div>
      )
    case 'table':
      return <Table node={node} />
    default:
      return null
  }
}

const drawAll = (nodes: readonly Nodes[]): ComponentChildren => nodes.map(draw)

/** Items of a tight list have no paragraphs. */
const drawTight = (node: Nodes): ComponentChildren => (node.type === 'paragraph' ? drawAll(node.children) : draw(node))

function plain(nodes: readonly Nodes[]): string {
  return nodes.map((node) => ('value' in node ? node.value : 'children' in node ? plain(node.children) : '')).join('')
}

/** The page itself uses h1 to h3, so headings of a message start at h4. */
function Heading({ depth, children }: { readonly depth: number; readonly children: ComponentChildren }) {
  const Tag = `h${Math.min(6, depth + 3)}` as 'h4' | 'h5' | 'h6'
  return <Tag class={`md-heading md-heading-${depth}`}>{children}</Tag>
}

/** No part of a text may be hidden, so everything after the opening fence is shown. */
export const Code = ({ text, about }: { readonly text: string; readonly about: string }) => (
  <div class="md-code">
    {about !== '' && <div class="md-language">{visible(about)}</div>}
    <ScrollRegion class="md-code-text" label="Code">
      <pre>
        <code>{visible(text)}</code>
      </pre>
    </ScrollRegion>
  </div>
)

const HARMLESS = /^(?:https?:\/\/|mailto:)/i

interface LinkProps {
  readonly url: string
  readonly about?: string | null | undefined
  readonly children: ComponentChildren
}

function Link({ url, about, children }: LinkProps) {
  if (!HARMLESS.test(url) || url.length > 2000)
    return (
      <span class="md-no-link" title="This address is not opened from here">
        {children} <span class="dim mono">({visible(url.slice(0, 200))})</span>
      </span>
    )
  return (
    <a href={url} title={about ? `${about} (${url})` : url} target="_blank" rel="noopener noreferrer">
      {children}
    </a>
  )
}

function Table({ node }: { readonly node: Extract<Nodes, { type: 'table' }> }) {
  const [head, ...rows] = node.children
  const style = (place: number) => ({ textAlign: node.align?.[place] ?? 'left' }) as const
  return (
    <ScrollRegion class="scroll-x" label="Table">
      <table class="md-table">
        <thead>
          <tr>
            {head?.children.map((cell, place) => (
              <th style={style(place)}>{drawAll(cell.children)}</th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr>
              {row.children.map((cell, place) => (
                <td style={style(place)}>{drawAll(cell.children)}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </ScrollRegion>
  )
}

import { render } from 'preact'
import { App } from './app.tsx'
import { openSource } from './source/open-source.ts'
import { SourceError } from './source/source.ts'
import './theme.css'

const source = await openSource().catch((error: unknown) =>
  error instanceof SourceError ? error : new SourceError('UNEXPECTED', String(error)),
)
// A hash in the address takes precedence over the page that the command names.
if (!(source instanceof SourceError) && location.hash === '' && source.start.route !== '#/')
  location.replace(source.start.route)
render(<App source={source} />, document.getElementById('app')!)

import { visible } from '../parts/safe-text.tsx'

/** The settings that a training was started with. */
export const Configuration = ({ config }: { readonly config: unknown }) => (
  <details class="panel">
    <summary>
      <h2>Configuration</h2>
    </summary>
    <pre class="training-text">{visible(JSON.stringify(config, undefined, 2) ?? 'none')}</pre>
  </details>
)

/** Options for commands that connect to nodes. */
export const nodeAccess = {
  tokenFile: {
    type: 'text',
    value: 'FILE',
    description: 'the token that the nodes were started with; default: the file that MANYWORLDS_TOKEN_FILE names',
    suggest: 'files',
  },
  tlsCa: {
    type: 'text',
    value: 'FILE',
    description: 'use TLS, and trust certificates that this authority has signed',
    suggest: 'files',
  },
  tlsCert: {
    type: 'text',
    value: 'FILE',
    description: 'our own certificate, PEM, for nodes that require one',
    suggest: 'files',
    needs: 'tlsKey',
  },
  tlsKey: { type: 'text', value: 'FILE', description: 'its key', suggest: 'files', needs: 'tlsCert' },
} as const

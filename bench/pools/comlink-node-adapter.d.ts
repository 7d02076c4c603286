// comlink ships this file with types that do not resolve under "nodenext".
declare module 'comlink/dist/umd/node-adapter.js' {
  import type { Worker } from 'node:worker_threads'
  import type { Endpoint } from 'comlink'
  export default function nodeEndpoint(worker: Worker): Endpoint
}

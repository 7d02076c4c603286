import type { ArgsOf, Spec } from '../../frame/command.ts'
import { runOrTraining, runsFolder } from '../../options/run-reference.ts'

const SAFE = 'Who may use it'
const REPORT = 'A report in a file'

export const viewSpec = {
  name: 'view',
  summary: 'Show runs, tasks and trainings in the browser',
  about: [
    'Serves a page on this machine and prints its address: the list of runs, a run with its tasks and workers, a task step by step, a training with its curves, and two runs side by side. Runs in progress are shown as they go on. It only reads the store, so a run is not disturbed by it.',
    'The address contains a token, which only you should have. To allow other machines, give --host, --token-file, --tls-cert and --tls-key. Ctrl-C ends it.',
    'With --out it writes a report: the same pages with their data, in one file that opens without a server. It lists what it left out.',
  ],
  positionals: {
    what: {
      ...runOrTraining,
      value: 'WHAT',
      description: `${runOrTraining.description}; or a folder with runs. Default: the folder of --dir`,
      optional: true,
    },
  },
  options: {
    dir: runsFolder,
    port: {
      type: 'integer',
      min: 0,
      value: 'PORT',
      description: 'the port to listen on; 0: any free one. Default: 5180, or a free one if that is taken',
    },
    noOpen: { type: 'flag', description: 'do not open a browser; only print the address' },
    out: {
      type: 'text',
      value: 'FILE',
      description: 'write a report instead: one HTML file that opens without a server',
      group: REPORT,
      suggest: 'files',
      excludes: ['port', 'host', 'tokenFile', 'tlsCert', 'noOpen'],
    },
    include: {
      type: 'choice',
      value: 'TASKS',
      choices: ['all', 'failed', 'none'],
      default: 'all',
      description:
        'of which tasks a report contains the steps: all that fit, those that failed or were not solved, or none',
      group: REPORT,
      needs: 'out',
    },
    maxSize: {
      type: 'number',
      value: 'MB',
      above: 0,
      max: 500,
      default: '20',
      description:
        'the largest size of a report. Steps of tasks that succeeded are left out first, then logs, then other steps',
      group: REPORT,
      needs: 'out',
    },
    force: { type: 'flag', description: 'replace the file if it exists', group: REPORT, needs: 'out' },
    host: {
      type: 'text',
      value: 'HOST',
      default: '127.0.0.1',
      description: 'the address to listen on; beyond this machine, a token file and TLS are required',
      group: SAFE,
    },
    tokenFile: {
      type: 'text',
      value: 'FILE',
      description: 'the token that the address must contain; default: a new one',
      group: SAFE,
      suggest: 'files',
    },
    tlsCert: {
      type: 'text',
      value: 'FILE',
      description: 'the certificate of this server, PEM; its address is then https://',
      group: SAFE,
      suggest: 'files',
      needs: 'tlsKey',
    },
    tlsKey: { type: 'text', value: 'FILE', description: 'its key', group: SAFE, suggest: 'files', needs: 'tlsCert' },
  },
  examples: [
    { about: 'all runs of this project', line: 'manyworlds view' },
    { about: 'the newest run', line: 'manyworlds view last' },
    { about: 'a run file that someone sent you', line: 'manyworlds view nightly-7.sqlite' },
    { about: 'a file to mail, or to attach to a build', line: 'manyworlds view nightly-7 --out report.html' },
    {
      about: 'for other machines',
      line: 'manyworlds view --host 0.0.0.0 --token-file token.txt --tls-cert cert.pem --tls-key key.pem',
    },
  ],
  exitCodes: {
    0: 'it was stopped, or the report was written',
    1: 'it could not listen, or a file could not be read or written',
  },
} as const satisfies Spec

export type ViewArgs = ArgsOf<typeof viewSpec>

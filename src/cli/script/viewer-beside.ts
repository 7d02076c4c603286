import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { say } from '../../text/say.ts'
import type { ShowAnswer, ShowRequest } from '../../view/child.ts'
import { runRoute, trainingRoute } from '../../view/target.ts'
import { hasDesktop, openBrowser } from '../commands/view/open-browser.ts'

const CHILD = fileURLToPath(new URL(`../../view/child${import.meta.filename.slice(-3)}`, import.meta.url))

/** The viewer beside the runs of a script (`--view`). It shows the first run or training that is stored. */
export class ViewerBeside {
  /** A line for the user, while runs go on. */
  readonly #tell: (line: string) => void
  #child: ChildProcess | undefined
  #url: string | undefined

  constructor(tell: (line: string) => void) {
    this.#tell = tell
  }

  run(id: string, file: string | undefined): void {
    this.#show({ id, kind: 'run', route: runRoute(id) }, file)
  }

  training(id: string, file: string | undefined): void {
    this.#show({ id, kind: 'training', route: trainingRoute(id) }, file)
  }

  /** When the script is done: at a terminal, the page stays until Ctrl-C. */
  async stay(): Promise<void> {
    if (this.#url === undefined || !process.stdout.isTTY || !this.#child?.connected) return
    say(`the viewer stays at ${this.#url}\nCtrl-C ends it`)
    this.#child.ref()
    this.#child.channel?.ref()
    await Promise.race([once(process, 'SIGINT'), once(process, 'SIGTERM'), once(this.#child, 'exit')])
    this.#child.disconnect()
  }

  #show(what: Omit<ShowRequest, 'file'>, file: string | undefined): void {
    if (this.#child !== undefined) return
    if (file === undefined) return this.#tell('--view: this run is not stored, so there is nothing to show')
    const child = fork(CHILD, { execArgv: [], stdio: ['ignore', 'ignore', 'inherit', 'ipc'] })
    this.#child = child
    child.on('error', (error) => this.#tell(`--view: the viewer could not be started: ${error.message}`))
    child.on('message', (answer: ShowAnswer) => this.#answered(answer))
    child.send({ ...what, file } satisfies ShowRequest)
    // The script ends when it has nothing left to do, with or without a viewer.
    child.unref()
    child.channel?.unref()
  }

  #answered(answer: ShowAnswer): void {
    if ('error' in answer) return this.#tell(`--view: ${answer.error}`)
    this.#url = answer.url
    this.#tell(`viewer: ${answer.url}`)
    if (hasDesktop()) openBrowser(answer.url)
  }
}

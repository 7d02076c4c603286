import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { say } from '../../text/say.ts'
import type { ShowAnswer, ShowRequest } from '../../view/child.ts'
import { runRoute, trainingRoute } from '../../view/target.ts'
import { hasDesktop, openBrowser } from '../commands/view/open-browser.ts'

const CHILD = fileURLToPath(new URL(`../../view/child${import.meta.filename.slice(-3)}`, import.meta.url))

/** The viewer of `--view`, which runs beside the script. It shows the first stored run or training. */
export class ViewerBeside {
  /** Prints a line for the user during runs. */
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

  /** Called when the script has finished. At a terminal, waits for Ctrl-C, so that the page stays open. */
  async stay(): Promise<void> {
    if (this.#url === undefined || !process.stdout.isTTY || !this.#child?.connected) return
    say(`the viewer is still open at ${this.#url}\nCtrl-C ends it`)
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
    // The viewer must not keep the script alive.
    child.unref()
    child.channel?.unref()
  }

  #answered(answer: ShowAnswer): void {
    if ('error' in answer) return this.#tell(`--view: ${answer.error}`)
    this.#url = answer.url
    this.#tell(`viewer: ${answer.url}`)
    if (hasDesktop()) openBrowser(answer.codeUrl)
  }
}

import { spawn } from 'node:child_process'

const PROGRAMS: Readonly<Partial<Record<NodeJS.Platform, readonly [string, ...string[]]>>> = {
  darwin: ['open'],
  // `start` takes the first quoted argument for a title.
  win32: ['cmd', '/c', 'start', ''],
  linux: ['xdg-open'],
}

/** Whether this machine has a desktop, so that a browser can be opened. */
export function hasDesktop(env = process.env): boolean {
  if (!process.stdout.isTTY || env.CI || env.SSH_CONNECTION || env.SSH_TTY) return false
  return process.platform !== 'linux' || Boolean(env.DISPLAY || env.WAYLAND_DISPLAY)
}

/** Opens a URL in the browser. Every user of the machine can read it: it must hold no token. If that fails, the user still has the address. */
export function openBrowser(url: string): void {
  const [program, ...args] = PROGRAMS[process.platform] ?? []
  if (program === undefined) return
  const child = spawn(program, [...args, url], { stdio: 'ignore', detached: true })
  child.on('error', () => {})
  child.unref()
}

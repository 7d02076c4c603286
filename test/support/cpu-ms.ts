/** Milliseconds for which this process has computed. Unlike the clock, they do not depend on what else the machine does. */
export function cpuMs(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1000
}

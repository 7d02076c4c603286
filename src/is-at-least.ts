/** Whether a dotted version is at least another. Anything after the numbers is ignored. */
export function isAtLeast(version: string, wanted: string): boolean {
  const [have, want] = [numbers(version), numbers(wanted)]
  const differs = want.findIndex((part, i) => (have[i] ?? 0) !== part)
  return differs === -1 || (have[differs] ?? 0) > want[differs]!
}

const numbers = (version: string) => version.match(/\d+/g)?.map(Number) ?? []

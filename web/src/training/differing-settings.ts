/** The settings of a configuration by path: `algorithm.lr`. Lists are one setting. */
function flatten(value: unknown, path: string, into: Map<string, string>): Map<string, string> {
  if (typeof value === 'object' && value !== null && !Array.isArray(value))
    for (const [key, inner] of Object.entries(value)) flatten(inner, path === '' ? key : `${path}.${key}`, into)
  else into.set(path, JSON.stringify(value) ?? 'none')
  return into
}

export interface DifferingSetting {
  readonly path: string
  /** For each configuration; undefined: it has no such setting. */
  readonly values: readonly (string | undefined)[]
}

/** The settings in which configurations differ. */
export function differingSettings(configs: readonly unknown[]): DifferingSetting[] {
  const flat = configs.map((config) => flatten(config, '', new Map<string, string>()))
  const paths = [...new Set(flat.flatMap((one) => [...one.keys()]))].sort()
  return paths
    .map((path) => ({ path, values: flat.map((one) => one.get(path)) }))
    .filter(({ values }) => new Set(values).size > 1)
}

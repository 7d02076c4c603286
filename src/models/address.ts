export const withoutSlash = (url: string): string => url.replace(/\/+$/, '')

/** The URL of a call: the path is appended to that of the base URL, whose query is kept. */
export function callURL(baseURL: string, path: string): string {
  const url = new URL(baseURL)
  url.pathname = withoutSlash(url.pathname) + path
  return url.href
}

/** The address of a model without parts that may be secret: user, password and query. */
export function publicURL(baseURL: string): string {
  const { origin, pathname } = new URL(baseURL)
  return withoutSlash(`${origin}${pathname}`)
}

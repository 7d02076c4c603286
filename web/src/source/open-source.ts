import { reportSource } from './report-source.ts'
import { serverSource } from './server-source.ts'
import type { Source } from './source.ts'

/** The source of this page: the data in it, if it is a report file, or else its server. */
export async function openSource(): Promise<Source> {
  const data = document.getElementById('report')
  return data ? await reportSource(data.textContent) : await serverSource()
}

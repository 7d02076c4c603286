import { registerHooks } from 'node:module'

/** Imports one module, and prints what that took: `node probe.mjs count|cost URL`. Plain JavaScript, so that nothing else is loaded. */
const [what, url] = process.argv.slice(2)
const own = new Set()
const packages = new Set()
if (what === 'count')
  registerHooks({
    load(loaded, context, next) {
      const [, name] = /.*\/node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(loaded) ?? []
      if (name !== undefined && name !== 'manyworlds') packages.add(name)
      if (loaded.startsWith('file:')) own.add(loaded)
      return next(loaded, context)
    },
  })
globalThis.gc()
const [cpu, memory] = [process.cpuUsage(), process.memoryUsage()]
await import(url)
const { user, system } = process.cpuUsage(cpu)
const { rss } = process.memoryUsage()
globalThis.gc()
const { heapUsed } = process.memoryUsage()
console.log(
  JSON.stringify({
    modules: own.size,
    packages: [...packages],
    cpuMs: (user + system) / 1000,
    rssMb: (rss - memory.rss) / 2 ** 20,
    heapMb: (heapUsed - memory.heapUsed) / 2 ** 20,
  }),
)

import { defineAgent, Runners } from '../../dist/index.js'

const size = defineAgent({ name: 'size', run: async (name: string, ctx) => (await ctx.blob(name)).byteLength })

const { answer } = await Runners.runTask(size.task('weights'), {
  store: false,
  workerNum: 1,
  blobs: { weights: new Uint8Array(1_000_000) },
})
console.log(answer)
if (process.argv[2] === 'waits') setInterval(() => {}, 1000)

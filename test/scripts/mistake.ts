// A mistake, given by name on the command line, that nobody catches.
import { defineAgent, Runners } from 'manyworlds'

const echo = defineAgent({ name: 'echo', run: async (input: unknown) => input })
switch (process.argv[2]) {
  case 'config':
    await Runners.runTask([echo.task(1)], { worker_num: 2 } as object)
    break
  case 'input':
    await Runners.runTask([echo.task(1), echo.task({ callback: () => 1 })])
    break
  case 'stream':
    for await (const response of Runners.streamTask([echo.task(1, { id: 'a' }), echo.task(2, { id: 'a' })]))
      console.log(response.id)
    break
  case 'source':
    await Runners.runTask(
      (function* () {
        yield echo.task(1)
        throw new Error('no more rows')
      })(),
    )
    break
  case 'not-awaited':
    Runners.runTask([echo.task(1)], { workerNum: 0 })
    break
}

import { defineAgent, Runners } from 'manyworlds'

const square = defineAgent({
  name: 'square',
  run: async (input: number) => ({ square: input * input, pid: process.pid }),
})
let turns = 0
const timer = setInterval(() => turns++, 1)

const first = Runners.syncRunTask([square.task(3)], { workerNum: 1 })
const second = Runners.syncRunTask([square.task(4)], { workerNum: 1 })
clearInterval(timer)
const [a, b] = [first.get('#1')?.answer, second.get('#1')?.answer]
console.log(JSON.stringify({ squares: [a?.square, b?.square], sameWorker: a?.pid === b?.pid, turns }))

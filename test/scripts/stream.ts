import { defineAgent, Runners } from 'manyworlds'

const square = defineAgent({ name: 'square', run: async (input: number) => input * input })
const numbers = Array.from({ length: 5 }, (_, index) => index)

let sum = 0
for await (const response of Runners.streamTask(numbers.map((input) => square.task(input)))) sum += response.answer ?? 0
console.log(JSON.stringify(sum))

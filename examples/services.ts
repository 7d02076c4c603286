/** Tasks that ask the driver: for a price, for news as they come, and for things that must not be paid for twice. */
import { setTimeout as sleep } from 'node:timers/promises'
import { defineAgent, Runners, type ServiceContext } from 'manyworlds'

const shopper = defineAgent({
  name: 'shopper',
  run: async (item: string, ctx) => {
    const { price } = await ctx.ask<{ price: number }>('prices', item)
    const news: string[] = []
    for await (const line of ctx.askStream<string>('news', item)) news.push(line)
    // Stored before it is here: if this attempt runs again, nothing is ordered or paid for a second time.
    const order = await ctx.ask<number>('order', { item, price })
    const receipt = await ctx.once('pay', { order }, () => ({ paid: price }))
    return `${item}: ${receipt.paid} (${news.join(', ')})`
  },
})

const prices = new Map([
  ['tea', 3],
  ['salt', 1],
  ['rice', 2],
])
let orders = 0
let atOnce = 0
let most = 0
const services = {
  prices: (item: string) => ({ price: prices.get(item) }),
  news: async function* (item: string) {
    yield `${item} is in`
    yield 'no queue'
  },
  order: {
    durable: true,
    atOnce: 2,
    answer: async (_: { item: string; price: number }, { signal }: ServiceContext) => {
      most = Math.max(most, ++atOnce)
      await sleep(50, undefined, { signal })
      atOnce--
      return ++orders
    },
  },
}

const responses = await Runners.runTask(
  [...prices.keys()].map((item) => shopper.task(item, { id: item })),
  { services, workerNum: 2 },
)
for (const { answer, error } of responses.values()) console.log(answer ?? error?.message)
console.log(`${orders} orders, ${most} at once at most`)
await Runners.shutdown()

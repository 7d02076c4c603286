import { defineAgent } from 'manyworlds'

/** A call that costs 50 to 249 tokens, of which the server is told, and the most of which is reserved. */
export const answering = defineAgent({
  name: 'answering',
  run: async (input: { readonly tokens: boolean } | null, ctx) => {
    if (input === null) return
    const cost = input.tokens ? 50 + Math.floor(Math.random() * 200) : 0
    // Of the 250 that are reserved, the text of the request is given 40.
    await ctx.generate({ model: 'm', prompt: 'x', maxTokens: input.tokens ? 210 : 1, extraBody: { cost } })
  },
})

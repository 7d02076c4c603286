import { defineEnvironment, stepAgent } from 'manyworlds/agents'
import { softmaxPolicy } from 'manyworlds/train'

type Place = 'gate' | 'garden' | 'road'

export const gatePolicy = softmaxPolicy<Place, string>({
  name: 'visitor',
  bits: 8,
  features: (place, way) => [`${place} ${way}`],
  value: (place) => [place],
})

/**
 * Who begins in the garden is given 1, on the road 0. Who begins at the gate goes to one of them, and is cut short there: only the value of
 * what was seen last tells which way was the better one.
 */
const gate = (name: string, truncated: boolean) =>
  defineEnvironment({
    name,
    reset: ({ input }: { input: Place }) => ({
      ...{ state: { place: input }, observation: input },
      candidates: input === 'gate' ? ['in', 'out'] : ['rest'],
    }),
    step: (state: { place: Place }, way: string) => {
      if (state.place !== 'gate')
        return { observation: state.place, reward: state.place === 'garden' ? 1 : 0, done: true, candidates: ['rest'] }
      const observation: Place = way === 'in' ? 'garden' : 'road'
      return { observation, reward: 0, done: truncated, truncated, candidates: ['rest'] }
    },
  })

/** Cut short by the agent's own limit, and by the world. */
export const byAgent = stepAgent({
  ...{ name: 'by-agent', environment: gate('gate', false), policy: gatePolicy, maxSteps: 1 },
})
export const byWorld = stepAgent({
  ...{ name: 'by-world', environment: gate('closing-gate', true), policy: gatePolicy, maxSteps: 5 },
})

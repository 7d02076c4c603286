import { stepAgent } from 'manyworlds/agents'
import { softmaxPolicy } from '../../dist/train/softmax/softmax-policy.js'
import { type DeskObservation, desk } from '../../examples/tool-desk/desk.ts'
import { deskFeatures } from '../../examples/tool-desk/features.ts'

export const clerkPolicy = softmaxPolicy<DeskObservation, string>({ name: 'clerk', features: deskFeatures })
export const trainedClerk = stepAgent({ name: 'trained-clerk', environment: desk, policy: clerkPolicy })

import type { ArgsOf, Spec } from '../../frame/command.ts'
import { modelOptions, suggestModels } from '../../options/model-options.ts'

export const modelsSpec = {
  name: 'models',
  summary: 'Try each language model with a small call: latency, what it can do',
  about: [
    'Calls each model of models.json, and of --model, as a run would: with its key, and within its limits. Prints how long a short answer took, and whether the server returns token ids and log-probabilities, calls tools, keeps to a JSON schema, and says how many tokens a call took. It takes four small calls per model, which some servers bill.',
    'A "no" means that it refused, or did not do it when asked once; a "?" that it did not answer that question.',
  ],
  positionals: {
    names: {
      value: 'NAME',
      description: 'these models only; default: all',
      many: true,
      optional: true,
      suggest: suggestModels,
    },
  },
  options: {
    model: modelOptions.model,
    models: modelOptions.models,
    timeout: {
      type: 'duration',
      value: 'DURATION',
      default: '30s',
      description: 'how long the calls of a model may take',
    },
    json: { type: 'flag', description: 'print one JSON array' },
  },
  examples: [
    { about: 'all models of models.json', line: 'manyworlds models' },
    { about: 'a server that is not written down yet', line: 'manyworlds models --model try=http://gpu1:8000/v1#qwen3' },
    {
      about: 'those that can be trained on',
      line: `manyworlds models --json | jq -r '.[] | select(.tokenIds and .logProbs).name'`,
    },
  ],
  exitCodes: { 0: 'all models answered', 1: 'some did not', 2: 'there are no models, or their settings are wrong' },
} as const satisfies Spec

export type ModelsArgs = ArgsOf<typeof modelsSpec>

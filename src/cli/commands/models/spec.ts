import type { ArgsOf, Spec } from '../../frame/command.ts'
import { modelOptions, suggestModels } from '../../options/model-options.ts'

export const modelsSpec = {
  name: 'models',
  summary: 'Test each language model with small calls: latency, features',
  about: [
    'Calls each model of models.json, and of --model, as a run would: with its key, and within its limits. Prints how long a short answer took, and whether the server returns token ids and log-probabilities, calls tools, follows a JSON schema, and reports how many tokens a call used. This takes four small calls per model, which some servers bill.',
    '"no" means that the server refused, or that the model did not do it when asked once. "?" means that this call was not answered.',
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
    { about: 'a server that is not in models.json', line: 'manyworlds models --model try=http://gpu1:8000/v1#qwen3' },
    {
      about: 'the models that can be used for training',
      line: `manyworlds models --json | jq -r '.[] | select(.tokenIds and .logProbs).name'`,
    },
  ],
  exitCodes: {
    0: 'all models answered',
    1: 'some models did not answer',
    2: 'there are no models, or their settings are wrong',
  },
} as const satisfies Spec

export type ModelsArgs = ArgsOf<typeof modelsSpec>

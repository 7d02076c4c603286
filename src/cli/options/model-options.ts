// Every command loads the specs, so the code that reads models.json is loaded for completion only.
export const suggestModels = async (): Promise<readonly string[]> => (await import('./model-names.ts')).modelNames()

/** Which models there are: for every command that calls some. */
export const modelOptions = {
  model: {
    type: 'text',
    many: true,
    value: 'NAME=…',
    description:
      'what a model is, over the code and models.json: NAME=OTHER (the settings of another one), NAME=URL#MODEL, or NAME={…} (JSON); once for each model',
    suggest: async () => (await suggestModels()).map((name) => `${name}=`),
  },
  models: {
    type: 'text',
    value: 'FILE',
    description: 'the file with models by name; default: models.json in this folder, if it is there',
    suggest: 'files',
  },
} as const

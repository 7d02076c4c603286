// Every command loads the specs, so the code that reads models.json is loaded only for completion.
export const suggestModels = async (): Promise<readonly string[]> => (await import('./model-names.ts')).modelNames()

/** Options for commands that call models. */
export const modelOptions = {
  model: {
    type: 'text',
    many: true,
    value: 'NAME=…',
    description:
      'define a model, overriding the script and models.json: NAME=OTHER (the settings of another model), NAME=URL#MODEL, or NAME={…} (JSON); may be repeated',
    suggest: async () => (await suggestModels()).map((name) => `${name}=`),
  },
  models: {
    type: 'text',
    value: 'FILE',
    description: 'the file with models by name; default: models.json in the current folder, if it exists',
    suggest: 'files',
  },
} as const

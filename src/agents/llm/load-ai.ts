import { ManyworldsError } from '../../errors.ts'

/** The parts of the AI SDK that we use. They are declared here because the package may not be installed. */
export interface AiSdk {
  readonly ToolLoopAgent: new (settings: object) => { generate(call: object): Promise<Generation> }
  readonly Output: { object(options: { schema: unknown }): object }
  readonly jsonSchema: (schema: object) => unknown
}

export interface Generation {
  readonly text: string
  /** Accessing it throws if there is no output. */
  readonly output: unknown
  readonly finishReason: string
  readonly steps: readonly GenerationStep[]
}

export interface GenerationStep {
  readonly text: string
  readonly finishReason: string
}

let loading: Promise<AiSdk> | undefined

/** Loads `ai`, an optional peer dependency. In a bundle for other machines it is part of the agent's code. */
export function loadAi(): Promise<AiSdk> {
  loading ??= load()
  loading.catch(() => {
    loading = undefined
  })
  return loading
}

async function load(): Promise<AiSdk> {
  try {
    return (await import('ai')) as unknown as AiSdk
  } catch (cause) {
    const { code, message } = cause as NodeJS.ErrnoException
    const why = code === 'ERR_MODULE_NOT_FOUND' ? 'it is not installed' : message
    throw new ManyworldsError(
      'PACKAGE_MISSING',
      `llmAgent needs the package \`ai\` (${why}). Install it: npm install ai`,
      { cause },
    )
  }
}

import type { ModelPrice } from './settings.ts'

/**
 * The part of the AI SDK's language model interface (`ai` 7, specification version 4) that this package uses. Declared
 * here, because `ai` and its packages are optional.
 */
export interface LanguageModel {
  readonly specificationVersion: 'v4'
  readonly provider: string
  readonly modelId: string
  readonly supportedUrls: PromiseLike<Record<string, RegExp[]>> | Record<string, RegExp[]>
  doGenerate(options: CallOptions): PromiseLike<GenerateResult>
  doStream(options: CallOptions): PromiseLike<StreamResult>
}

/** A model object provided by the user, from any package: it is called as specified, and its results are checked. */
export interface GivenModel {
  readonly specificationVersion: 'v4'
  readonly provider: string
  readonly modelId: string
  /** Set by `withPrice`. */
  readonly price?: ModelPrice
  doGenerate(options: never): PromiseLike<object>
  doStream(options: never): PromiseLike<object>
}

export const isLanguageModel = (given: object): given is GivenModel =>
  'doGenerate' in given && typeof given.doGenerate === 'function'

export interface CallOptions {
  prompt: readonly PromptMessage[]
  maxOutputTokens?: number
  temperature?: number
  stopSequences?: readonly string[]
  topP?: number
  topK?: number
  presencePenalty?: number
  frequencyPenalty?: number
  responseFormat?: { type: 'text' } | { type: 'json'; schema?: object; name?: string; description?: string }
  seed?: number
  tools?: readonly (FunctionTool | ProviderTool)[]
  toolChoice?: { type: 'auto' | 'none' | 'required' } | { type: 'tool'; toolName: string }
  includeRawChunks?: boolean
  abortSignal?: AbortSignal
  headers?: Record<string, string | undefined>
  reasoning?: string
  providerOptions?: ProviderOptions
}

export type ProviderOptions = Record<string, Record<string, unknown>>

export interface FunctionTool {
  type: 'function'
  name: string
  description?: string
  inputSchema: object
  strict?: boolean
}

export interface ProviderTool {
  type: 'provider'
  id: string
  name: string
}

export type PromptMessage =
  | { role: 'system'; content: string }
  | { role: 'user'; content: readonly (TextPart | FilePart)[] }
  | { role: 'assistant'; content: readonly AssistantPart[] }
  | { role: 'tool'; content: readonly (ToolResultPart | { type: 'tool-approval-response' })[] }

export interface TextPart {
  type: 'text'
  text: string
}

export interface FilePart {
  type: 'file'
  filename?: string
  data: FileData
  mediaType: string
}

export type FileData =
  | { type: 'data'; data: Uint8Array | string }
  | { type: 'url'; url: URL }
  | { type: 'text'; text: string }
  | { type: 'reference'; reference: Record<string, string> }

export type AssistantPart =
  | TextPart
  | { type: 'reasoning'; text: string }
  | { type: 'tool-call'; toolCallId: string; toolName: string; input: unknown }
  | { type: 'file' | 'reasoning-file' | 'custom' }
  | ToolResultPart

export interface ToolResultPart {
  type: 'tool-result'
  toolCallId: string
  toolName: string
  output: ToolOutput
}

export type ToolOutput =
  | { type: 'text' | 'error-text'; value: string }
  | { type: 'json' | 'error-json'; value: unknown }
  | { type: 'execution-denied'; reason?: string }
  | { type: 'content'; value: readonly ({ type: 'text'; text: string } | FilePart | { type: 'custom' })[] }

export interface GenerateResult {
  content: Content[]
  finishReason: FinishReason
  usage: CallUsage
  providerMetadata?: Record<string, Record<string, never>>
  request?: { url?: string; body?: unknown }
  response?: ResponseInfo & { headers?: Record<string, string>; body?: unknown }
  warnings: { type: 'unsupported'; feature: string; details?: string }[]
}

export interface ResponseInfo {
  id?: string
  timestamp?: Date
  modelId?: string
}

export type Content =
  | { type: 'text'; text: string }
  | { type: 'reasoning'; text: string }
  | { type: 'tool-call'; toolCallId: string; toolName: string; input: string }

export interface FinishReason {
  unified: 'stop' | 'length' | 'content-filter' | 'tool-calls' | 'error' | 'other'
  raw: string | undefined
}

export interface CallUsage {
  inputTokens: {
    total: number | undefined
    noCache: number | undefined
    cacheRead: number | undefined
    cacheWrite: number | undefined
  }
  outputTokens: { total: number | undefined; text: number | undefined; reasoning: number | undefined }
}

export interface StreamResult {
  stream: ReadableStream<StreamPart>
  request?: { body?: unknown }
  response?: { headers?: Record<string, string> }
}

export type StreamPart =
  | { type: 'stream-start'; warnings: GenerateResult['warnings'] }
  | ({ type: 'response-metadata' } & ResponseInfo)
  | { type: 'text-start' | 'text-end' | 'reasoning-start' | 'reasoning-end'; id: string }
  | { type: 'text-delta' | 'reasoning-delta'; id: string; delta: string }
  | { type: 'tool-input-start'; id: string; toolName: string }
  | { type: 'tool-input-delta'; id: string; delta: string }
  | { type: 'tool-input-end'; id: string }
  | Extract<Content, { type: 'tool-call' }>
  | { type: 'finish'; usage: CallUsage; finishReason: FinishReason }

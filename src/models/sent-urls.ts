import type { CallOptions, PromptMessage } from './language-model.ts'

/** URL objects cannot be sent to the driver: they are sent as strings and recreated there. */
export const withUrlsAsTexts = <Options extends Pick<CallOptions, 'prompt'>>(options: Options): Options =>
  withUrls(options, String)

/** Throws if a string is not a URL. */
export const withUrlObjects = <Options extends Pick<CallOptions, 'prompt'>>(options: Options): Options =>
  withUrls(options, (url) => new URL(String(url)))

function withUrls<Options extends Pick<CallOptions, 'prompt'>>(options: Options, change: (url: unknown) => unknown) {
  return { ...options, prompt: options.prompt.map((message) => changed(message, change)) }
}

function changed(message: PromptMessage, change: (url: unknown) => unknown): PromptMessage {
  if (message.role === 'system') return message
  return { ...message, content: message.content.map((part) => changedPart(part, change)) } as PromptMessage
}

/** Files can be parts of messages, and parts of tool results. */
function changedPart(part: object, change: (url: unknown) => unknown): object {
  const { data, output } = part as { data?: { type?: unknown; url?: unknown }; output?: Partial<ContentOutput> }
  if (data?.type === 'url') return { ...part, data: { ...data, url: change(data.url) } }
  if (output?.type !== 'content' || !Array.isArray(output.value)) return part
  return { ...part, output: { ...output, value: output.value.map((inner) => changedPart(inner, change)) } }
}

interface ContentOutput {
  readonly type: 'content'
  readonly value: readonly object[]
}

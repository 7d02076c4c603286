/** A JSON schema, as far as the server reads it. */
export interface Schema {
  readonly type?: string | readonly string[]
  readonly properties?: Readonly<Record<string, Schema>>
  readonly items?: Schema
  readonly enum?: readonly unknown[]
  readonly const?: unknown
  readonly anyOf?: readonly Schema[]
}

export interface RequestMessage {
  readonly role: string
  readonly content?: unknown
}

/** What the server reads of a request's body. Clients under test may send anything: every field is looked at before use. */
export interface RequestBody {
  readonly model?: string
  readonly messages?: readonly RequestMessage[]
  /** Of `/v1/completions`: text, or token ids. */
  readonly prompt?: string | readonly number[]
  readonly tools?: readonly {
    readonly function: { readonly name: string; readonly description?: string; readonly parameters?: Schema }
  }[]
  readonly response_format?: { readonly type: string; readonly json_schema?: { readonly schema?: Schema } }
  readonly max_tokens?: number
  readonly max_completion_tokens?: number
  readonly stream?: boolean
  readonly stream_options?: { readonly include_usage?: boolean }
  /** `true` in chats, a number in completions. */
  readonly logprobs?: boolean | number
  readonly return_token_ids?: boolean
}

/** Undefined if it is not a JSON object. */
export function parseBody(text: string): RequestBody | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : undefined
  } catch {
    return undefined
  }
}

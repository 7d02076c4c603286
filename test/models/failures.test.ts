import { describe, expect, test } from 'vitest'
import { callModel, type PermitWanted } from '../../dist/models/calling.js'
import { checkReply } from '../../dist/models/check-reply.js'
import type { Permit } from '../../dist/models/driver/limiter.js'
import { type Failure, type FailureKind, failureOf } from '../../dist/models/failures.js'
import { completionIn } from '../../dist/models/read-completion.js'
import { cpuMs } from '../support/cpu-ms.ts'

/** What servers say when they do not answer, in their own words. */

const openai = (
  message: string,
  type: string | null = 'invalid_request_error',
  code: string | number | null = null,
) => ({
  error: { message, type, param: null, code },
})
const vllm = (message: string) => ({ object: 'error', message, type: 'BadRequestError', param: null, code: 400 })

const CASES: readonly (readonly [who: string, status: number, body: unknown, kind: FailureKind])[] = [
  [
    'OpenAI: rate limit, with a hint about billing',
    429,
    openai(
      'Rate limit reached for gpt-4o in organization org-x on requests per min (RPM): Limit 3, Used 3, Requested 1. Please try again in 20s. You can increase your rate limit by adding a payment method to your account at https://platform.openai.com/account/billing.',
      'requests',
      'rate_limit_exceeded',
    ),
    'rate_limit',
  ],
  [
    'OpenAI: no quota',
    429,
    openai(
      'You exceeded your current quota, please check your plan and billing details.',
      'insufficient_quota',
      'insufficient_quota',
    ),
    'authentication',
  ],
  [
    'OpenAI: a request that no minute has room for',
    429,
    openai(
      'Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 342389. The input or output tokens must be reduced in order to run successfully.',
      'tokens',
      'rate_limit_exceeded',
    ),
    'context_length',
  ],
  [
    'OpenAI: a wrong key',
    401,
    openai(
      'Incorrect API key provided: sk-x. You can find your API key at https://platform.openai.com/account/api-keys.',
      'invalid_request_error',
      'invalid_api_key',
    ),
    'authentication',
  ],
  [
    'OpenAI: too long',
    400,
    openai(
      "This model's maximum context length is 128000 tokens. However, your messages resulted in 204308 tokens. Please reduce the length of the messages.",
      'invalid_request_error',
      'context_length_exceeded',
    ),
    'context_length',
  ],
  [
    'OpenAI: no such model',
    404,
    openai(
      'The model `gpt-9` does not exist or you do not have access to it.',
      'invalid_request_error',
      'model_not_found',
    ),
    'invalid_request',
  ],
  [
    'OpenAI: a wrong parameter',
    400,
    openai(
      "Unsupported parameter: 'max_tokens' is not supported with this model.",
      'invalid_request_error',
      'unsupported_parameter',
    ),
    'invalid_request',
  ],
  [
    'OpenAI: its own mistake',
    500,
    openai('The server had an error while processing your request. Sorry about that!', 'server_error'),
    'transient',
  ],
  [
    'OpenAI: overloaded',
    503,
    openai('The engine is currently overloaded, please try again later', 'server_error'),
    'transient',
  ],
  [
    'Azure: content filter',
    400,
    {
      error: {
        message:
          "The response was filtered due to the prompt triggering Azure OpenAI's content management policy. Please modify your prompt and retry.",
        type: null,
        param: 'prompt',
        code: 'content_filter',
        status: 400,
        innererror: { code: 'ResponsibleAIPolicyViolation' },
      },
    },
    'content_filter',
  ],
  [
    'Azure: rate limit',
    429,
    {
      error: {
        code: '429',
        message:
          'Requests to the ChatCompletions_Create Operation have exceeded token rate limit of your current AIServices S0 pricing tier. Please retry after 6 seconds. Please go here: https://aka.ms/oai/quotaincrease if you would like to further increase the default rate limit.',
      },
    },
    'rate_limit',
  ],
  [
    'Anthropic: overloaded',
    529,
    { type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } },
    'transient',
  ],
  [
    'Anthropic: too long with its output',
    400,
    {
      type: 'error',
      error: {
        type: 'invalid_request_error',
        message:
          'input length and `max_tokens` exceed context limit: 174167 + 64000 > 200000, decrease input length or `max_tokens` and try again',
      },
    },
    'context_length',
  ],
  [
    'Anthropic: too long',
    400,
    {
      type: 'error',
      error: { type: 'invalid_request_error', message: 'prompt is too long: 208310 tokens > 200000 maximum' },
    },
    'context_length',
  ],
  [
    'Anthropic: no credit',
    400,
    {
      type: 'error',
      error: { type: 'invalid_request_error', message: 'Your credit balance is too low to access the Anthropic API.' },
    },
    'invalid_request',
  ],
  [
    'vLLM: too long',
    400,
    vllm(
      "This model's maximum context length is 6048 tokens. However, you requested 6616 tokens (568 in the messages, 6048 in the completion). Please reduce the length of the messages or completion.",
    ),
    'context_length',
  ],
  [
    'vLLM: too long, since 0.15',
    400,
    {
      error: {
        message:
          "This model's maximum context length is 2048 tokens. However, your request has 8 input tokens plus 2045 'max_tokens'. Please reduce one or the other.",
        type: 'BadRequestError',
        param: 'input_tokens',
        code: 400,
      },
    },
    'context_length',
  ],
  [
    'vLLM: no such model',
    404,
    { object: 'error', message: 'The model `x` does not exist.', type: 'NotFoundError', param: null, code: 404 },
    'invalid_request',
  ],
  [
    'vLLM: a body of the wrong form',
    422,
    { detail: [{ loc: ['body', 'messages'], msg: 'field required' }] },
    'invalid_request',
  ],
  [
    'llama.cpp: too long',
    400,
    {
      error: {
        code: 400,
        message: 'the request exceeds the available context size, try increasing it',
        type: 'exceed_context_size_error',
        n_prompt_tokens: 3000,
        n_ctx: 2048,
      },
    },
    'context_length',
  ],
  [
    'llama.cpp: became too long',
    500,
    { error: { code: 500, message: 'Context size has been exceeded.', type: 'server_error' } },
    'context_length',
  ],
  [
    'llama.cpp: still loads',
    503,
    { error: { code: 503, message: 'Loading model', type: 'unavailable_error' } },
    'transient',
  ],
  [
    'SGLang: too long',
    400,
    vllm("The input (61709 tokens) is longer than the model's context length (40960 tokens)."),
    'context_length',
  ],
  [
    'OpenRouter: rate limit',
    429,
    {
      error: {
        message: 'Provider returned error',
        code: 429,
        metadata: {
          raw: 'x/y:free is temporarily rate-limited upstream. Please retry shortly, or add your own key to accumulate your rate limits',
          provider_name: 'P',
        },
      },
    },
    'rate_limit',
  ],
  [
    'OpenRouter: too long for the server behind it',
    400,
    {
      error: {
        message: 'Provider returned error',
        code: 400,
        metadata: { raw: '{"error":{"message":"This endpoint\'s maximum context length is 8192 tokens."}}' },
      },
    },
    'context_length',
  ],
  [
    'OpenRouter: no credit',
    402,
    { error: { message: 'Insufficient credits. Add more using https://openrouter.ai/settings/credits', code: 402 } },
    'authentication',
  ],
  [
    'OpenRouter: moderated',
    403,
    { error: { message: 'Your input was flagged', code: 'content_policy_violation' } },
    'content_filter',
  ],
  [
    'Together: too long',
    400,
    openai(
      'Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4097. Given: 80125 `inputs` tokens and 4096 `max_new_tokens`',
    ),
    'context_length',
  ],
  [
    'Groq: rate limit, with a hint about billing',
    429,
    openai(
      'Rate limit reached for model `llama-3.1-8b-instant` in organization `org_x` service tier `on_demand` on tokens per minute (TPM): Limit 6000, Used 5034, Requested 1443. Please try again in 4.77s. Need more tokens? Upgrade to Dev Tier today at https://console.groq.com/settings/billing',
      'tokens',
      'rate_limit_exceeded',
    ),
    'rate_limit',
  ],
  [
    'Groq: a request that no minute has room for',
    413,
    openai(
      'Request too large for model `llama-3.3-70b-versatile` on tokens per minute (TPM): Limit 12000, Requested 14137',
      'tokens',
      'rate_limit_exceeded',
    ),
    'context_length',
  ],
  ['Groq: no room for now', 498, openai('Flex tier capacity exceeded'), 'transient'],
  [
    'Gemini: rate limit',
    429,
    [
      {
        error: {
          code: 429,
          message: 'You exceeded your current quota, please check your plan and billing details.',
          status: 'RESOURCE_EXHAUSTED',
          details: [{ '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: '28s' }],
        },
      },
    ],
    'rate_limit',
  ],
  [
    'DeepSeek: no balance',
    402,
    openai('Insufficient Balance', 'unknown_error', 'invalid_request_error'),
    'authentication',
  ],
  ['nginx: a page', 502, '<html><head><title>502 Bad Gateway</title></head><body>nginx</body></html>', 'transient'],
  ['a proxy: nothing', 504, '', 'transient'],
  ['a proxy: wants a login', 407, '', 'invalid_request'],
]

const bodyOf = (body: unknown) => (typeof body === 'string' ? body : JSON.stringify(body))

describe('what a server says means', () => {
  test.each(CASES)('%s (%i)', (_, status, body, kind) => {
    const failure = failureOf({ status, headers: {}, body: bodyOf(body) })
    expect(failure).toMatchObject({ kind, status })
    expect(failure.message).not.toMatch(/^[{<]|undefined|^$/)
  })

  test('Gemini says in its body when to come back', () => {
    const [, , body] = CASES.find(([who]) => who.startsWith('Gemini'))!
    const again = { status: 429, headers: { 'retry-after': '3' }, body: bodyOf(body) }
    expect(failureOf({ ...again, headers: {} }).retryAfterMs).toBe(28_000)
    expect(failureOf(again).retryAfterMs).toBe(3000)
  })

  const NOW = Date.parse('2026-01-01T00:00:00Z')
  test.each([
    [{ 'retry-after': '2' }, 2000],
    [{ 'retry-after': '0.5' }, 500],
    [{ 'retry-after': '0' }, 0],
    [{ 'retry-after': 'Thu, 01 Jan 2026 00:00:07 GMT' }, 7000],
    [{ 'retry-after': 'Thu, 01 Jan 2015 00:00:07 GMT' }, undefined],
    [{ 'retry-after-ms': '250', 'retry-after': '9' }, 250],
    [{ 'retry-after': '86400' }, 3_600_000],
    [{ 'retry-after': '-1' }, undefined],
    [{ 'retry-after': 'soon' }, undefined],
    [{ 'retry-after': '' }, undefined],
    [{}, undefined],
  ])('%j is a wait of %s ms', (headers, ms) => {
    expect(failureOf({ status: 429, headers, body: '' }, NOW).retryAfterMs).toBe(ms)
  })

  test('a redirect is not followed, and says where it goes', () => {
    const { kind, message } = failureOf({ status: 308, headers: { location: 'https://x.example/v1/' }, body: '' })
    expect([kind, message]).toEqual(['invalid_request', expect.stringContaining('https://x.example/v1/')])
  })

  test('a long text is shortened, and control characters are written out', () => {
    const { message } = failureOf({ status: 500, headers: {}, body: `\x1b[31m${'x'.repeat(10_000)}` })
    expect(message.length).toBeLessThan(600)
    expect(message).toContain('\\x1b[31m')
  })
})

const MEGABYTES = 10
/** Of a busy machine; what is quadratic takes hours. */
const SOON_MS = 15_000

test.each([
  'context ',
  'maximum maximum',
  'input too ',
  '<',
  '<<a>',
  'content-',
  ' ',
  '\n',
  'data: ',
  'data:\n',
  'data: {}\n\n',
  '{"error":',
  '[',
  ':\r',
])(`${MEGABYTES} MB of %j are read in time`, (piece) => {
  const body = piece.repeat(Math.ceil((MEGABYTES * 1024 * 1024) / piece.length))
  const began = cpuMs()
  for (const status of [200, 400, 429, 500]) checkReply({ status, headers: { 'retry-after': body }, body })
  completionIn(`data: ${body}`)
  expect(cpuMs() - began).toBeLessThan(SOON_MS)
})

test('10 MB of chunks that each begin a call are read in time', () => {
  const calls = Array.from({ length: 100_000 }, (_, n) => ({
    index: 0,
    id: `c${n}`,
    function: { name: 'f', arguments: '{}' },
  }))
  const body = calls
    .map((call) => `data: ${JSON.stringify({ choices: [{ delta: { tool_calls: [call] } }] })}\n\n`)
    .join('')
  const began = cpuMs()
  expect(completionIn(`${body}data: [DONE]\n\n`)?.choices?.[0]?.message?.tool_calls).toHaveLength(100_000)
  expect(cpuMs() - began).toBeLessThan(SOON_MS)
})

describe('one place tries again', () => {
  interface Tried {
    readonly wanted: (PermitWanted & { askedAt: number })[]
    readonly settled: unknown[]
    readonly result: Promise<unknown>
  }

  /** `outcomes`: of one try after the other; a text is an answer. */
  function calling(
    outcomes: readonly (Failure | string)[],
    { maxRetries = 6, permitMs = 60_000, takesMs = 0 } = {},
  ): Tried {
    const wanted: (PermitWanted & { askedAt: number })[] = []
    const settled: unknown[] = []
    let at = 0
    const result = callModel({
      ...{ what: "model 'm'", where: 'm at http://server', apiKeyEnv: 'KEY', permitMs, maxRetries },
      permit: async (asked): Promise<Permit> => {
        wanted.push({ ...asked, askedAt: performance.now() })
        if (takesMs > 0) await new Promise((done) => setTimeout(done, takesMs))
        return { settle: (outcome) => settled.push(outcome) }
      },
      attempt: async () => {
        const outcome = outcomes[Math.min(at++, outcomes.length - 1)]!
        return typeof outcome === 'string' ? { answer: outcome, tokens: 5 } : { failure: outcome }
      },
    })
    return { wanted, settled, result }
  }
  const failed = (kind: FailureKind, retryAfterMs?: number): Failure => ({
    ...{ kind, message: 'no', status: 500 },
    ...(retryAfterMs !== undefined && { retryAfterMs }),
  })

  test('an answer settles its permit with its tokens', async () => {
    const { result, settled } = calling(['yes'])
    expect(await result).toMatchObject({ answer: 'yes', retries: 0 })
    expect(settled).toEqual([{ kind: 'ok', tokens: 5 }])
  })

  test('failures in passing wait longer from time to time, and as long as the server says', async () => {
    const began = performance.now()
    const { result, wanted } = calling([failed('transient'), failed('timeout'), failed('transient', 9000), 'yes'])
    expect(await result).toMatchObject({ answer: 'yes', retries: 3 })
    const waits = wanted.slice(1)
    for (const [place, [least, most]] of [
      [250, 500],
      [500, 1000],
      [9000, 9000],
    ].entries()) {
      // A wait begins after the call, and before its permit is asked for.
      const { notBefore, askedAt } = waits[place]!
      expect(notBefore! - began).toBeGreaterThanOrEqual(least!)
      expect(notBefore! - askedAt).toBeLessThanOrEqual(most!)
    }
    expect(wanted.map(({ first }) => first ?? false)).toEqual([false, true, true, true])
  })

  test.each([0, 1, 3])('with maxRetries %i there are so many more tries', async (maxRetries) => {
    const { result, settled } = calling([failed('transient')], { maxRetries })
    await expect(result).rejects.toMatchObject({ code: 'MODEL_TRANSIENT' })
    expect(settled).toEqual(Array.from({ length: maxRetries + 1 }, () => ({ kind: 'failed' })))
  })

  test('rate limits do not count as retries; they end with the time to wait for a turn', async () => {
    const limited = Array.from({ length: 20 }, () => failed('rate_limit', 7))
    const { result, settled } = calling([...limited, 'yes'], { maxRetries: 0 })
    expect(await result).toMatchObject({ answer: 'yes', retries: 20 })
    expect(settled[0]).toEqual({ kind: 'rate_limit', retryAfterMs: 7 })
    const never = calling([failed('rate_limit')], { permitMs: 60, takesMs: 25 })
    await expect(never.result).rejects.toMatchObject({
      ...{ code: 'MODEL_RATE_LIMIT', message: expect.stringContaining('`permitTimeoutMs`') },
    })
    expect(never.wanted.length).toBeLessThan(5)
  })

  test.each(['invalid_request', 'authentication', 'content_filter', 'context_length'] as const)(
    '%s is not tried again',
    async (kind) => {
      const { result, settled } = calling([failed(kind), 'yes'])
      await expect(result).rejects.toThrow("model 'm': the server answered HTTP 500: no")
      expect(settled).toHaveLength(1)
    },
  )
})

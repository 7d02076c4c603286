import type { AdapterDialect, AdapterServerOptions } from './adapter-server.ts'

/** A server for the versions of a LoRA policy; created by `vllm()` and `sglang()`. */
export interface ServedElsewhere {
  readonly dialect: AdapterDialect
  readonly options: AdapterServerOptions
}

/** The full distribution; otherwise servers take `top_p` and others from the model's files. */
const WHOLE = { top_p: 1, min_p: 0 }

/**
 * A vLLM server that loads adapters while it runs. Start it with `--enable-lora` and VLLM_ALLOW_RUNTIME_LORA_UPDATING=True, and with
 * `--logprobs-mode processed_logprobs` for a temperature other than 1.
 *
 * @example
 * const policy = lora({ base: 'Qwen/Qwen3-4B', serve: vllm({ baseURL: 'http://gpu1:8000/v1', folder: '/shared/adapters' }) })
 */
export const vllm = (options: AdapterServerOptions): ServedElsewhere => ({
  options,
  dialect: {
    ...{ name: 'vllm', behind: 'baseURL', load: '/load_lora_adapter', unload: '/unload_lora_adapter' },
    model: (adapter) => adapter,
    body: { ...WHOLE, top_k: 0 },
  },
})

/**
 * An SGLang server that loads adapters while it runs. Start it with `--enable-lora`. `model`: the name of its base
 * model.
 */
export const sglang = ({ model, ...options }: AdapterServerOptions & { readonly model: string }): ServedElsewhere => ({
  options,
  dialect: {
    ...{ name: 'sglang', behind: 'origin', load: '/load_lora_adapter', unload: '/unload_lora_adapter' },
    model: (adapter) => `${model}:${adapter}`,
    body: { ...WHOLE, top_k: -1 },
  },
})

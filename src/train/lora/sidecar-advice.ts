/** The symptoms of a sidecar failure. */
interface Failure {
  readonly signal?: string | null
  /** The error message, or the last line printed. */
  readonly message: string
}

/** Advice for failures with a common cause; '' for others. */
export function adviceFor({ signal, message }: Failure): string {
  if (signal === 'SIGILL')
    return ": the CPU lacks an instruction that PyTorch used, often for bf16; use `dtype: 'float32'`, or set ONEDNN_MAX_CPU_ISA=AVX2"
  if (signal === 'SIGKILL')
    return ': if the system killed it, memory ran out; use a smaller `microBatch`, shorter episodes or a smaller base model'
  if (/out of memory|can't allocate memory/i.test(message))
    return ': memory ran out; use a smaller `microBatch`, shorter episodes or a smaller base model'
  if (/No space left on device|File too large|ENOSPC/.test(message))
    return ': free disk space, or set another folder with XDG_CACHE_HOME (converted models) or HF_HOME (downloaded models)'
  if (/No module named/.test(message))
    return ': a Python package is missing; run `manyworlds setup lora --force`, or install it in the Python that MANYWORLDS_LORA_PYTHON names'
  return ''
}

/** How a failure of the sidecar showed. */
interface Failure {
  readonly signal?: string | null
  /** Of the error, or the last line that was printed. */
  readonly message: string
}

/** What to do about failures that have a usual cause; '' for the others. */
export function adviceFor({ signal, message }: Failure): string {
  if (signal === 'SIGILL')
    return ": the CPU does not have an instruction that PyTorch used, often one of bf16. Use `dtype: 'float32'`, or set ONEDNN_MAX_CPU_ISA=AVX2"
  if (signal === 'SIGKILL')
    return ': somebody killed it; if that was the system, memory ran out (a smaller `microBatch`, shorter episodes or a smaller base model need less)'
  if (/out of memory|can't allocate memory/i.test(message))
    return ': memory ran out. A smaller `microBatch`, shorter episodes or a smaller base model need less'
  if (/No space left on device|File too large|ENOSPC/.test(message))
    return ': make room, or name another folder with XDG_CACHE_HOME (converted models) or HF_HOME (downloaded ones)'
  if (/No module named/.test(message))
    return ': a package is missing in its Python. Run `manyworlds setup lora --force`, or mend what MANYWORLDS_LORA_PYTHON names'
  return ''
}

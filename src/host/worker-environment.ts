/** The host's environment variables that a worker gets. All others, such as tokens and keys, stay with the host. */
const PASSED =
  /^(PATH|HOME|USER|LOGNAME|SHELL|XDG_CACHE_HOME|LANG|LC_\w+|TZ|TMPDIR|LD_LIBRARY_PATH|DYLD_LIBRARY_PATH|NODE_EXTRA_CA_CERTS|SSL_CERT_(FILE|DIR)|(https?|no|all)_proxy|HTTPS?_PROXY|NO_PROXY|ALL_PROXY|CUDA_\w+|NVIDIA_\w+)$/

export function hostEnvironment(also: readonly string[] = []): Record<string, string> {
  const passed = Object.entries(process.env).filter(
    (entry): entry is [string, string] => entry[1] !== undefined && (PASSED.test(entry[0]) || also.includes(entry[0])),
  )
  return Object.fromEntries(passed)
}

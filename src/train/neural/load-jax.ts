import { ManyworldsError } from '../../errors.ts'

/** The parts of jax-js that are used. Declared here, because the package is optional. */
export interface Jax {
  readonly numpy: {
    array(data: Float32Array): JaxArray
    dot(a: JaxArray, b: JaxArray): JaxArray
    tanh(a: JaxArray): JaxArray
  }
  grad<Arguments extends unknown[]>(of: (...args: Arguments) => JaxArray): (...args: Arguments) => Arguments[0]
  jit<Arguments extends unknown[], Result>(of: (...args: Arguments) => Result): (...args: Arguments) => Result
}

/** A function that receives an array owns and frees it. `ref` returns another reference to pass on. */
export interface JaxArray {
  readonly ref: JaxArray
  add(other: JaxArray): JaxArray
  mul(other: JaxArray): JaxArray
  sum(): JaxArray
  reshape(shape: readonly number[]): JaxArray
  dataSync(): Float32Array
}

let loading: Promise<Jax> | undefined

/** Loads `@jax-js/jax`, which is needed for training a neural policy, but not for acting. */
export function loadJax(): Promise<Jax> {
  loading ??= load()
  loading.catch(() => {
    loading = undefined
  })
  return loading
}

async function load(): Promise<Jax> {
  try {
    return (await import('@jax-js/jax')) as unknown as Jax
  } catch (cause) {
    const { code, message } = cause as NodeJS.ErrnoException
    const why = code === 'ERR_MODULE_NOT_FOUND' ? 'which is not installed' : `which cannot be loaded (${message})`
    throw new ManyworldsError(
      'PACKAGE_MISSING',
      `training a neural policy needs @jax-js/jax, ${why}; run: npm install @jax-js/jax`,
      { cause },
    )
  }
}

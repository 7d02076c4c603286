import { ManyworldsError } from '../../errors.ts'

/** The parts of jax-js that a network is differentiated with. Written down here, because the package need not be installed. */
export interface Jax {
  readonly numpy: {
    array(data: Float32Array): JaxArray
    dot(a: JaxArray, b: JaxArray): JaxArray
    tanh(a: JaxArray): JaxArray
  }
  grad<Arguments extends unknown[]>(of: (...args: Arguments) => JaxArray): (...args: Arguments) => Arguments[0]
  jit<Arguments extends unknown[], Result>(of: (...args: Arguments) => Result): (...args: Arguments) => Result
}

/** A function that is given one takes it: it is freed there. `ref` is one more to give away. */
export interface JaxArray {
  readonly ref: JaxArray
  add(other: JaxArray): JaxArray
  mul(other: JaxArray): JaxArray
  sum(): JaxArray
  reshape(shape: readonly number[]): JaxArray
  dataSync(): Float32Array
}

let loading: Promise<Jax> | undefined

/** `@jax-js/jax` is installed by those who train a neural policy. Acting does not need it. */
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
    const why = code === 'ERR_MODULE_NOT_FOUND' ? 'it is not installed' : message
    throw new ManyworldsError(
      'PACKAGE_MISSING',
      `training a neural policy needs jax-js, and ${why}: npm install @jax-js/jax`,
      { cause },
    )
  }
}

import { ManyworldsError } from '../errors.ts'
import { isStream, type Service } from '../executor/service.ts'
import type { Packed } from '../protocol/messages.ts'
import { NotPackable, pack } from '../protocol/pack.ts'
import { isPacked, readPacked } from '../protocol/read-packed.ts'
import type { ServiceContext, ServiceDefinition, ServiceFunction } from '../services.ts'
import { wordsOf } from '../text/thrown.ts'

/** The services that a run was configured with, as the executor asks them. */
export function userServices(
  services: Readonly<Record<string, ServiceFunction | ServiceDefinition>> | undefined,
): ReadonlyMap<string, Service> | undefined {
  if (services === undefined) return undefined
  return new Map(Object.entries(services).map(([name, service]) => [name, serviceOf(name, service)]))
}

function serviceOf(name: string, given: ServiceFunction | ServiceDefinition): Service {
  const { answer, durable = false, atOnce } = typeof given === 'function' ? { answer: given } : given
  return {
    once: durable,
    durable,
    atOnce: atOnce ?? Number.POSITIVE_INFINITY,
    unlimited: false,
    check(body) {
      // JSON is checked when it is parsed, below. Parsing it twice would double the cost of a large question.
      if (!(body instanceof String || isPacked(body))) throw new TypeError('a malformed question')
    },
    ask(call) {
      const { entry, attempt } = call.lease
      const ctx: ServiceContext = {
        runId: entry.run.options.runId,
        taskId: entry.id,
        attempt,
        get signal() {
          return call.signal
        },
      }
      let said: unknown
      try {
        said = answer(readPacked(call.body), ctx)
        if (isStream(said)) return packedParts(name, said)
      } catch (error) {
        throw failure(name, error)
      }
      return packedAnswer(name, said)
    },
  }
}

async function packedAnswer(name: string, said: unknown): Promise<Packed> {
  try {
    return packed(await said)
  } catch (error) {
    throw failure(name, error)
  }
}

async function* packedParts(name: string, parts: AsyncIterable<unknown>): AsyncGenerator<Packed> {
  try {
    for await (const part of parts) yield packed(part)
  } catch (error) {
    throw failure(name, error)
  }
}

/** Only the message of the error: the error itself may hold secrets that workers must not have. */
const failure = (name: string, thrown: unknown) =>
  new ManyworldsError('SERVICE_FAILED', `service '${name}' failed: ${wordsOf(thrown).message}`)

function packed(value: unknown): Packed {
  if (isStream(value)) throw new TypeError('it returned a promise of an async iterable; return the iterable itself')
  try {
    return pack(value)
  } catch (error) {
    if (!(error instanceof NotPackable)) throw error
    throw new TypeError(`its answer cannot be sent: ${error.message}; answer with plain data`)
  }
}

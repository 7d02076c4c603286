import { ManyworldsError } from '../errors.ts'
import { isStream, type Service } from '../executor/service.ts'
import type { Packed } from '../protocol/messages.ts'
import { NotPackable, pack } from '../protocol/pack.ts'
import { isPacked, readPacked } from '../protocol/read-packed.ts'
import type { ServiceDefinition, ServiceFunction } from '../services.ts'

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
      if (!isPacked(body)) throw new TypeError('a malformed question')
    },
    ask({ lease, body, signal }) {
      const { entry, attempt } = lease
      const ctx = { runId: entry.run.options.runId, taskId: entry.id, attempt, signal }
      const said = answer(readPacked(body), ctx)
      return isStream(said) ? packedParts(name, said) : packedAnswer(name, said)
    },
  }
}

const packedAnswer = async (name: string, said: unknown): Promise<Packed> => packed(name, await said)

async function* packedParts(name: string, parts: AsyncIterable<unknown>): AsyncGenerator<Packed> {
  for await (const part of parts) yield packed(name, part)
}

function packed(name: string, value: unknown): Packed {
  if (isStream(value))
    throw new ManyworldsError(
      'SERVICE_FAILED',
      `service '${name}' answers with a promise of an async iterable; return the iterable itself`,
    )
  try {
    return pack(value)
  } catch (error) {
    if (!(error instanceof NotPackable)) throw error
    throw new ManyworldsError(
      'SERVICE_FAILED',
      `the answer of service '${name}' cannot be sent: ${error.message}; answer with plain data`,
    )
  }
}

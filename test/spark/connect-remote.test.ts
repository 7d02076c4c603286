import { describe, expect, test } from 'vitest'
import { isSecure, parseRemote, showRemote } from '../../src/engines/spark/connect/remote.ts'
import { ManyworldsError } from '../../src/errors.ts'

const NOBODY = {}
const parse = (text: string) => parseRemote(text, NOBODY)

describe('connection strings, as pyspark reads them', () => {
  test('a host alone', () => {
    expect(parse('sc://spark.example')).toEqual({ host: 'spark.example', port: 15002, headers: {} })
    expect(parse('sc://spark.example/')).toEqual(parse('sc://spark.example'))
    expect(parse('sc://spark.example/;')).toEqual(parse('sc://spark.example'))
  })

  test('a port', () => {
    expect(parse('sc://localhost:443')).toMatchObject({ host: 'localhost', port: 443 })
    expect(parse('sc://[::1]:15003')).toMatchObject({ host: '::1', port: 15003 })
    expect(showRemote(parse('sc://[::1]'))).toBe('sc://[::1]:15002')
  })

  test('everything that there is', () => {
    const id = '10d8a9c4-1c3e-4d4e-9a6e-1f2b3c4d5e6f'
    const text = `sc://h:1/;token=a%3Bb==;use_ssl=True;user_id=j%C3%B6;user_agent=me%201;session_id=${id};X-Tenant=7`
    expect(parse(text)).toEqual({
      ...{ host: 'h', port: 1, token: 'a;b==', useSsl: true, userId: 'jö', userAgent: 'me 1', sessionId: id },
      headers: { 'x-tenant': '7' },
    })
  })

  test('settings of other clients are not sent as headers', () => {
    expect(parse('sc://h/;grpc_keepalive_time_ms=5;grpc_keepalive_enabled=true').headers).toEqual({})
  })

  test('a token that it does not have comes from the environment', () => {
    const env = { SPARK_CONNECT_AUTHENTICATE_TOKEN: 'from there' }
    expect(parseRemote('sc://h', env).token).toBe('from there')
    expect(parseRemote('sc://h/;token=own', env).token).toBe('own')
    expect(parseRemote('sc://h', { SPARK_CONNECT_AUTHENTICATE_TOKEN: '' })).not.toHaveProperty('token')
  })
})

describe('TLS', () => {
  const secure = (text: string, tls?: object) => isSecure(parse(text), tls)

  test('without a token it is off, unless it is asked for', () => {
    expect(secure('sc://h')).toBe(false)
    expect(secure('sc://h/;use_ssl=true')).toBe(true)
    expect(secure('sc://h', {})).toBe(true)
  })

  test('a token goes in the clear to this machine alone', () => {
    expect(secure('sc://h/;token=t')).toBe(true)
    for (const host of ['localhost', '127.0.0.1', '127.1.2.3', '[::1]'])
      expect(secure(`sc://${host}/;token=t`)).toBe(false)
    expect(secure('sc://localhost.example/;token=t')).toBe(true)
    expect(secure('sc://localhost/;token=t;use_ssl=true')).toBe(true)
  })

  test('to another machine only if somebody says so', () => {
    expect(secure('sc://h/;token=t;use_ssl=false')).toBe(false)
    expect(() => secure('sc://h/;use_ssl=false', {})).toThrow(/use_ssl=false/)
  })
})

describe('what is none', () => {
  const SECRET = 'sEcReT'

  test.each([
    ['', /begin with sc:/],
    ['localhost:15002', /begin with sc:/],
    ['http://h', /begin with sc:/],
    ['sc:/h', /begin with sc:/],
    ['sc://', /no host/],
    ['sc://:15002', /no host/],
    ['sc:///;token=sEcReT', /no host/],
    ['sc://h:0', /0 is not a port/],
    ['sc://h:65536', /65536 is not a port/],
    ['sc://h:spark', /is not a host/],
    ['sc://h:1:2', /is not a host/],
    ['sc://a b', /is not a host/],
    ['sc://[::1', /is not a host/],
    ['sc://::1', /is not a host/],
    ['sc://me:sEcReT@h', /user_id/],
    ['sc://h;token=sEcReT', /a \/ before the first ;/],
    ['sc://h/path', /only be parameters/],
    ['sc://h/path;token=sEcReT', /only be parameters/],
    ['sc://h?token=sEcReT', /is not a host/],
    ['sc://h/?token=sEcReT', /only be parameters/],
    ['sc://h/;sEcReT', /key=value/],
    ['sc://h/;=sEcReT', /key=value/],
    ['sc://h/;token=', /token is empty/],
    ['sc://h/;token=%zzsEcReT', /value of token has a %/],
    ['sc://h/;token=sEcReT%0A', /value of token has characters/],
    ['sc://h/;token=sEcReT%C3%B6', /value of token has characters/],
    ['sc://h/;use_ssl=yes', /true or false/],
    ['sc://h/;session_id=7', /UUID/],
    ['sc://h/;x y=sEcReT', /name of a parameter/],
  ])('%s', (text, why) => {
    let error: unknown
    try {
      parse(text)
    } catch (thrown) {
      error = thrown
    }
    expect(ManyworldsError.is(error) && error.code).toBe('CONFIG_INVALID')
    const { message } = error as Error
    expect(message).toMatch(why)
    expect(message).toContain('sc://host:15002')
    expect(message.split('\n')).toHaveLength(1)
    expect(message).not.toContain(SECRET)
  })
  test('a user agent that is a book', () => {
    expect(() => parse(`sc://h/;user_agent=${'x'.repeat(3000)}`)).toThrow(/longer than 2048/)
  })
})

import { describe, expect, it } from 'vitest'
import { storeFolder } from '../store/store-folder.ts'
import { served, TOKEN } from './served.ts'

const bearer = { authorization: `Bearer ${TOKEN}` }

describe('who may use the viewer', () => {
  it('needs the token: in the URL of the page, then as a cookie, or as a bearer token', async () => {
    const { ask, server } = await served(storeFolder().store)
    for (const path of ['/', '/api/runs', '/api/start'])
      expect(await ask(path), path).toMatchObject({ status: 401, text: expect.stringContaining('manyworlds view') })
    expect((await ask(`/?token=${TOKEN}x`)).status).toBe(401)
    expect((await ask('/api/runs', { authorization: `Bearer ${TOKEN}x` })).status).toBe(401)
    // The token in a URL is for pages only: URLs of requests end up in logs.
    expect((await ask(`/api/runs?token=${TOKEN}`)).status).toBe(401)
    const page = await ask(`/?token=${TOKEN}`)
    expect([200, 503]).toContain(page.status)
    const [cookie] = page.headers['set-cookie'] as string[]
    expect(cookie).toMatch(new RegExp(`^manyworlds-view-${server.port}=.*HttpOnly; SameSite=Strict$`))
    expect((await ask('/api/runs', { cookie: cookie!.split(';', 1)[0]! })).status).toBe(200)
    expect((await ask('/api/runs', { cookie: `manyworlds-view-${server.port}=%zz` })).status).toBe(401)
    expect((await ask('/api/runs', bearer)).status).toBe(200)
  })

  it('refuses other names of this machine (DNS rebinding), other origins and other sites', async () => {
    const { ask, server } = await served(storeFolder().store)
    const { port } = server
    const status = async (headers: Record<string, string>) => (await ask('/api/runs', { ...bearer, ...headers })).status
    for (const host of [`localhost:${port}`, `127.0.0.1:${port}`, `[::1]:${port}`, `LOCALHOST:${port}`])
      expect(await status({ host }), host).toBe(200)
    for (const host of [
      'evil.example',
      `evil.example:${port}`,
      'localhost',
      `localhost:${port + 1}`,
      `192.0.2.1:${port}`,
    ])
      expect(await status({ host }), host).toBe(403)
    expect(await status({ origin: `http://127.0.0.1:${port}` })).toBe(200)
    for (const origin of ['http://evil.example', 'null', `https://127.0.0.1:${port}`, `http://localhost:${port}`])
      expect(await status({ origin }), origin).toBe(403)
    expect(await status({ 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'cors' })).toBe(403)
  })

  it('only reads, and only short URLs', async () => {
    const { ask } = await served(storeFolder().store)
    for (const method of ['POST', 'PUT', 'DELETE', 'OPTIONS'])
      expect(await ask('/api/runs', bearer, method), method).toMatchObject({ status: 405 })
    expect(await ask('/api/runs', bearer, 'HEAD')).toMatchObject({ status: 200, text: '' })
    expect((await ask(`/api/run?run=${'x'.repeat(9000)}`, bearer)).status).toBe(414)
  })

  it('sends strict headers with every answer', async () => {
    const { ask } = await served(storeFolder().store)
    const paths = [`/?token=${TOKEN}`, '/', '/api/runs', '/api/nothing', '/assets/nothing.js']
    for (const { headers } of await Promise.all(
      paths.map((path) => ask(path, path.startsWith('/api') ? bearer : {})),
    )) {
      expect(headers['content-security-policy']).toMatch(
        /^default-src 'none'; script-src 'self';.*frame-ancestors 'none'$/,
      )
      expect(headers).toMatchObject({
        'x-content-type-options': 'nosniff',
        'referrer-policy': 'no-referrer',
        'cross-origin-opener-policy': 'same-origin',
        'cross-origin-resource-policy': 'same-origin',
        'cache-control': 'no-store',
      })
    }
  })

  it('serves nothing beside the page', async () => {
    const { ask } = await served(storeFolder().store)
    for (const path of [
      '/assets/../../package.json',
      '/assets/..%2f..%2fpackage.json',
      '/package.json',
      '/assets/x.ts',
    ])
      expect((await ask(path, bearer)).text, path).not.toContain('"manyworlds"')
  })
})

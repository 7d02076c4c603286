import { describe, expect, it } from 'vitest'
import { Sessions } from '../../src/view/http/sessions.ts'
import { storeFolder } from '../store/store-folder.ts'
import { served, TOKEN } from './served.ts'

const bearer = { authorization: `Bearer ${TOKEN}` }

describe('who may use the viewer', () => {
  it('needs the token: in the URL of the page, then a session, or as a bearer token', async () => {
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
    for (const wrong of ['%zz', TOKEN, `${cookie!.split(/[=;]/)[1]!}x`, '9999999999.a.b', '..'])
      expect((await ask('/api/runs', { cookie: `manyworlds-view-${server.port}=${wrong}` })).status, wrong).toBe(401)
    // Other servers on this host get the cookie too.
    expect(cookie).not.toContain(TOKEN)
    // The printed URL works again, in another browser too, with a session of its own.
    expect((await ask(`/?token=${TOKEN}`)).headers['set-cookie']).not.toEqual([cookie])
    expect((await ask('/api/runs', bearer)).status).toBe(200)
  })

  it('opens a browser with a code that works once, and never with the token', async () => {
    const { ask, server } = await served(storeFolder().store)
    const { pathname, search } = new URL(server.codeUrl())
    expect(search).not.toContain(TOKEN)
    const session = ((await ask(pathname + search)).headers['set-cookie'] as string[])[0]!.split(';', 1)[0]!
    const read = async () => (await ask('/api/runs', { cookie: session })).status
    expect(await read()).toBe(200)
    // A reload of the same address by the same browser.
    expect([200, 503]).toContain((await ask(pathname + search, { cookie: session })).status)
    expect((await ask(`/api/runs${search}`)).status).toBe(401)
    // Somebody else has read the code, and may have been the first to use it.
    expect(await ask(pathname + search)).toMatchObject({ status: 401, text: expect.stringContaining('used before') })
    expect(await read()).toBe(401)
    expect([200, 503]).toContain((await ask(`/?token=${TOKEN}`)).status)
  })

  it('has sessions that end, outlive a restart with the same token, and open one port only', () => {
    let now = 1e12
    const sessions = new Sessions(TOKEN, 80, () => now)
    const session = sessions.begin()
    const code = sessions.newCode()
    expect(sessions.accepts(session)).toBe(true)
    expect(new Sessions(TOKEN, 80, () => now).accepts(session)).toBe(true)
    expect(new Sessions(TOKEN, 81, () => now).accepts(session)).toBe(false)
    expect(new Sessions('another', 80, () => now).accepts(session)).toBe(false)
    now += 3 * 60_000
    expect(sessions.exchange(code)).toBeUndefined()
    now += 31 * 24 * 3600_000
    expect(sessions.accepts(session)).toBe(false)
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

import { afterAll, expect, it, vi } from 'vitest'

// What a user gets who has installed Express 4: its own router as well.
vi.doMock('express', async () => {
  const { default: express4 } = await import('express4')
  return { default: express4, Router: express4.Router }
})
vi.resetModules()
afterAll(() => {
  vi.doUnmock('express')
  vi.resetModules()
})

const { bodyAbout, newId, openEndpoint } = await import('./kit.js')
const { openGatedCore } = await import('./gated-core.js')

it('the router of Express 4 serves as that of Express 5 does', async () => {
  const core = await openGatedCore()
  const endpoint = await openEndpoint(core)
  const id = newId()
  const made = await endpoint.post(bodyAbout(id))
  expect(made).toMatchObject({ status: 200, text: JSON.stringify({ status: 'OK', userId: id }) })
  expect((await endpoint.post('', { method: 'HEAD' })).status).toBe(405)
  expect((await endpoint.post('', { method: 'OPTIONS' })).headers.get('allow')).toBe('POST')
  expect((await endpoint.post(bodyAbout(id), { token: undefined })).status).toBe(401)
  const elsewhere = await fetch(`${endpoint.url}/migrate/other`)
  expect(await elsewhere.json()).toEqual({ ok: true })
})

import { expect, it } from 'vitest'
import { admitRequest } from '../../example-app/control-room/server/gate.js'

const HTTP_PORT = 80

it('serves the page at the port of the scheme, which browsers leave out', () => {
  const gate = { port: HTTP_PORT, isKey: (text: string) => text === 'key' }
  const admitted = (host: string, origin: string) =>
    'route' in
    admitRequest(
      { method: 'POST', target: '/key/api/call', headers: { host: [host], origin: [origin] } },
      gate,
    )
  expect(admitted('127.0.0.1', 'http://127.0.0.1')).toBe(true)
  expect(admitted('localhost', 'http://localhost')).toBe(true)
  expect(admitted('127.0.0.1', 'http://localhost')).toBe(false)
  expect(admitted('127.0.0.1:0', 'http://127.0.0.1:0')).toBe(false)
  expect(admitted('evil.example', 'http://evil.example')).toBe(false)
})

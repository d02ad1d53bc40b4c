import { expect, it } from 'vitest'
import { ActionError } from '../../example-app/control-room/ports.js'
import { admitRequest } from '../../example-app/control-room/server/gate.js'
import { serveRoom } from '../../example-app/control-room/server/serve-room.js'
import { FILES, quietRoom } from './quiet-room.js'

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

it('complains in one line, whatever a visitor has called a caller', async () => {
  const room = {
    ...quietRoom().room,
    act: async () => {
      throw new ActionError('one\r\ntwo\u001b[31m\u2028three has sent no token')
    },
  }
  const server = await serveRoom({ room: async () => room, files: FILES })
  const answer = await fetch(new URL('api/call', server.address), {
    method: 'POST',
    headers: { 'content-type': 'application/json', origin: new URL(server.address).origin },
    body: '{}',
  })
  expect(await answer.json()).toEqual({ error: 'one two [31m three has sent no token' })
  await server.close()
})

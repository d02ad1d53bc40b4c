import { afterEach, beforeEach, expect, it } from 'vitest'
import { ActionError, type Room } from '../../example-app/control-room/ports.js'
import { type RoomServer, serveRoom } from '../../example-app/control-room/server/serve-room.js'
import { FILES, quietRoom } from './quiet-room.js'

let server: RoomServer
let action: ReturnType<typeof newAction>

function newAction() {
  let end = (_: object) => {}
  let fail = (_: Error) => {}
  const promise = new Promise<object>((resolve, reject) => {
    end = resolve
    fail = reject
  })
  return { promise, end, fail }
}

beforeEach(async () => {
  action = newAction()
  const act: Room['act'] = () => action.promise
  server = await serveRoom({ room: async () => ({ ...quietRoom().room, act }), files: FILES })
})
afterEach(() => server.close())

async function post(name: string, input: unknown): Promise<[status: number, body: unknown]> {
  const { origin } = new URL(server.address)
  const response = await fetch(`${server.address}api/${name}`, {
    method: 'POST',
    headers: { origin, 'content-type': 'application/json' },
    body: JSON.stringify(input),
  })
  return [response.status, await response.json()]
}

it('does not keep a request waiting for what takes long, and answers whoever asks again', async () => {
  const [status, ticket] = await post('call', {})
  expect([status, ticket]).toEqual([202, { ticket: expect.any(String) }])
  expect(await post('unfinished', ticket)).toEqual([202, ticket])
  const asked = post('unfinished', ticket)
  action.end({ did: 'call' })
  expect(await asked).toEqual([200, { did: 'call' }])
  // An answer may have been lost on its way.
  expect(await post('unfinished', ticket)).toEqual([200, { did: 'call' }])
})

it('tells what was wrong with what took long', async () => {
  const [, ticket] = await post('call', {})
  action.fail(new ActionError('Nobody was there.'))
  expect(await post('unfinished', ticket)).toEqual([400, { error: 'Nobody was there.' }])
})

it('says so when it knows nothing of it', async () => {
  const unknown = [400, { error: 'The room knows no more what came of this' }]
  expect(await post('unfinished', { ticket: 'made up' })).toEqual(unknown)
  expect(await post('unfinished', {})).toMatchObject([400, {}])
})

import { inspect } from 'node:util'
import { beforeAll, describe, expect, it } from 'vitest'
import type { CoreClient } from '../../../src/migration/core/core-client.js'
import { refusingOrigin } from '../../support/network/free-port.js'
import { knowSecret, recordOutput } from '../../support/secret-search/index.js'
import {
  API_KEY,
  OUTAGES,
  ok,
  type Reply,
  replies,
  type ScriptedCore,
  startScriptedCore,
  tooLarge,
} from './scripted-core.js'

const HASH = '$argon2id$v=19$m=65536,t=2,p=1$c2FsdHNhbHQ$aGFzaG9mdGhlcGFzc3dvcmQ'
const OTHERS_HASH = '$2a$10$N9qo8uLOickgx2ZMRZoMyeIjZAgcfl7p92ldGxad68LJZdL17lhWy'

beforeAll(() => {
  knowSecret('an API key', API_KEY)
  for (const secret of [HASH, OTHERS_HASH]) knowSecret('a password', secret)
})

const coreThat = (...script: Reply[]): Promise<ScriptedCore> => startScriptedCore(script)

const USER = { externalUserId: 'u1', loginMethods: [] }

/** A read, and the writes, each with what it sends. */
const WRITES: Record<string, (client: CoreClient) => Promise<unknown>> = {
  staging: (client) => client.stageUsers([USER]),
  'direct import': (client) => client.importUser(USER),
  deletion: (client) => client.deleteRows(['a']),
}

/** Time limits for an outage that ends with this code, and the requests that are sent. */
function limitsOf(code: 'unreachable' | 'timeout') {
  const ms = code === 'timeout' ? 150 : 20_000
  let tries = 0
  const counting: typeof fetch = (input, init) => {
    tries += 1
    return fetch(input, init)
  }
  return { options: { timeoutMs: ms, stageTimeoutMs: ms, fetch: counting }, tries: () => tries }
}

const rejectionOf = async (promise: Promise<unknown>): Promise<unknown> => {
  const error = await promise.then(
    () => undefined,
    (thrown: unknown) => thrown,
  )
  recordOutput('an error', error)
  recordOutput('an error, inspected', inspect(error, { showHidden: true, depth: 9 }))
  recordOutput('an error, as JSON', JSON.stringify(error))
  expect((error as Error).cause).toBeUndefined()
  return error
}

describe.concurrent('a core that has got the request and', () => {
  for (const [what, reply, code] of OUTAGES) {
    it(`${what}: a read is tried three times, then ${code}`, async () => {
      const core = await coreThat(reply)
      const { options, tries } = limitsOf(code)
      const error = await rejectionOf(core.client(options).countRows())
      expect(error).toMatchObject({ name: 'CoreError', code, outcome: 'refused' })
      expect(error).not.toHaveProperty('status')
      expect(tries()).toBe(3)
    })

    it(`${what}: a write is sent once, and its outcome is unknown`, async () => {
      for (const write of Object.values(WRITES)) {
        const core = await coreThat(reply)
        const { options, tries } = limitsOf(code)
        const error = await rejectionOf(write(core.client(options)))
        expect(error).toMatchObject({ name: 'CoreError', code, outcome: 'unknown' })
        expect(tries()).toBe(1)
      }
    })
  }
})

describe.concurrent('a core that refuses the connection', () => {
  it.each(Object.entries(WRITES))('refuses %s, which is tried three times', async (_, write) => {
    const core = await coreThat(ok({}))
    const baseUrl = await refusingOrigin()
    const { options, tries } = limitsOf('unreachable')
    const error = await rejectionOf(write(core.client({ ...options, baseUrl })))
    expect(error).toMatchObject({ code: 'unreachable', outcome: 'refused' })
    expect((error as Error).message).toContain('ECONNREFUSED')
    expect(tries()).toBe(3)
  })

  it('and comes back gets the write once', async () => {
    const core = await coreThat(ok({}))
    const { url: live } = core
    const dead = await refusingOrigin()
    let tries = 0
    const moving: typeof fetch = (input, init) => {
      tries += 1
      return fetch(tries < 3 ? String(input).replace(live, dead) : input, init)
    }
    const client = core.client({ fetch: moving })
    expect(await client.stageUsers([USER])).toEqual({ outcome: 'staged' })
    expect([tries, core.requests.length]).toEqual([3, 1])
  })
})

const IN_MEMORY = 'This API is not supported in the in-memory database.\n'
const QUOTED = 'java.lang.IllegalStateException: $2a$10$abcdefghijklmnopqrstuv'

/** Status, body; then the code of the error, and what it is of a write. */
const ANSWERS: readonly [string, number, unknown, string, 'refused' | 'unknown'][] = [
  ['a wrong key', 401, 'Invalid API key\n', 'invalid_api_key', 'refused'],
  ['a forbidden tenant', 403, 'Only public tenantId', 'forbidden', 'refused'],
  ['an unknown path', 404, 'Not found\n', 'not_found', 'refused'],
  ['a database in memory', 400, IN_MEMORY, 'in_memory_database', 'refused'],
  ['no JSON object', 400, 'Invalid Json Input\n', 'bad_request', 'refused'],
  ['too many users', 400, { error: 'You can only add 10000 users' }, 'bad_request', 'refused'],
  ['a page for an unknown path', 404, '<html>404', 'malformed_reply', 'refused'],
  ['another method', 405, 'Method not supported', 'bad_request', 'refused'],
  ['too much', 413, '<html>', 'too_large', 'refused'],
  ['too many requests', 429, 'slow down', 'busy', 'refused'],
  ['a fault', 500, QUOTED, 'server_error', 'unknown'],
  ['a fault in JSON', 503, { status: 'OK', count: 1 }, 'server_error', 'unknown'],
  ['a redirect', 301, '', 'bad_request', 'unknown'],
  ['another success', 201, { status: 'OK', count: 1 }, 'malformed_reply', 'unknown'],
  ['no JSON', 200, '<html>', 'malformed_reply', 'unknown'],
  ['null', 200, 'null', 'malformed_reply', 'unknown'],
  ['another status', 200, { status: 'NOT_OK', count: 1 }, 'malformed_reply', 'unknown'],
  ['another form', 200, { status: 'OK', count: '1', users: {} }, 'malformed_reply', 'unknown'],
  ['no UTF-8', 200, Buffer.from('{"status":"\xff"}', 'latin1'), 'malformed_reply', 'unknown'],
]

describe.concurrent('a core that answers', () => {
  it.each(ANSWERS)('%s: %i', async (_, status, body, code, outcome) => {
    const headers = {
      ...(status < 400 && { location: 'http://127.0.0.1:9/elsewhere' }),
      // Longer than a call may take.
      ...(status === 429 && { 'retry-after': '600' }),
    }
    const core = await coreThat(replies(status, body, headers))
    const error = await rejectionOf(core.client().countRows())
    expect(error).toMatchObject({ name: 'CoreError', code, status, outcome: 'refused' })
    const isPassing = code === 'server_error' || code === 'malformed_reply'
    expect(core.requests).toHaveLength(isPassing ? 3 : 1)
    const sent = core.requests.length
    const writeError = await rejectionOf(core.client().deleteRows(['a']))
    expect(writeError).toMatchObject({ code, status, outcome })
    expect(core.requests).toHaveLength(sent + 1)
    expect(inspect([error, writeError])).not.toMatch(/\$2a|slow down|<html>/)
  })

  it('with more than is read: 200', async () => {
    const core = await coreThat(ok({}))
    const client = core.client({ fetch: async () => tooLarge() })
    const tooMuch = { code: 'too_large', status: 200 }
    const error = await rejectionOf(client.countRows())
    expect(error).toMatchObject({ ...tooMuch, outcome: 'refused' })
    expect((error as Error).message).toContain('with more than 134217728 bytes')
    for (const write of Object.values(WRITES)) {
      expect(await rejectionOf(write(client))).toMatchObject({ ...tooMuch, outcome: 'unknown' })
    }
  })

  it('a fault of the form to staging and direct import, too', async () => {
    for (const body of ['<html>', { status: 'OK', users: [1], user: {} }]) {
      const core = await coreThat(replies(200, body))
      for (const write of Object.values(WRITES)) {
        const error = await rejectionOf(write(core.client()))
        expect(error).toMatchObject({ code: 'malformed_reply', outcome: 'unknown', status: 200 })
      }
      expect(core.requests).toHaveLength(3)
    }
  })

  it.each([
    { users: [], errors: [] },
    { users: [{ index: 1, errors: ['x'] }] },
    { users: [{ index: 0, errors: [] }] },
  ])('with a refusal that names no user who was sent: %j', async (body) => {
    const core = await coreThat(replies(400, body))
    const refused = { code: 'bad_request', outcome: 'refused' }
    expect(await rejectionOf(core.client().stageUsers([USER]))).toMatchObject(refused)
  })

  it('with other than a staged user for each: nobody knows which', async () => {
    const core = await coreThat(ok({ users: [] }))
    const error = await rejectionOf(core.client().stageUsers([USER]))
    expect(error).toMatchObject({ code: 'malformed_reply', outcome: 'unknown' })
  })

  it('at last: a read gets its value', async () => {
    const core = await coreThat(
      replies(500, 'once'),
      (response) => response.destroy(),
      ok({ count: 7 }),
    )
    expect(await core.client().countRows()).toBe(7)
  })

  it.each([200, 400, 500])('its key and a hash: %i, and no error quotes them', async (status) => {
    const core = await coreThat(replies(status, [API_KEY, OTHERS_HASH]))
    const calls = [...Object.values(WRITES), (client: CoreClient) => client.listRows()]
    for (const call of calls) {
      const error = await rejectionOf(call(core.client()))
      expect(error).toMatchObject({ name: 'CoreError' })
      expect(inspect(error, { showHidden: true, depth: 9 })).not.toMatch(/the-key-of|N9qo8u/)
    }
  })

  it('what names a mistake of the request, which the error says', async () => {
    const refusal = "Field name 'ids' cannot contain more than 500 elements"
    const core = await coreThat(replies(400, `${refusal}\n`))
    const error = await rejectionOf(core.client().deleteRows(['a']))
    expect((error as Error).message).toBe(
      `POST /bulk-import/users/remove: the core answered 400: ${refusal}`,
    )
  })
})

it('no error of a fetch is passed on', async () => {
  const core = await coreThat(ok({}))
  const failing = async () => {
    throw new Error(`${API_KEY} ${HASH}`, { cause: { headers: { 'api-key': API_KEY } } })
  }
  const error = await rejectionOf(core.client({ fetch: failing }).stageUsers([USER]))
  expect(error).toMatchObject({ code: 'unreachable', outcome: 'unknown' })
})

describe.concurrent('a redirect', () => {
  it('is not followed, for the key would follow', async () => {
    const other = await coreThat(ok({ count: 1 }))
    for (const status of [301, 302, 303, 307, 308]) {
      const core = await coreThat(replies(status, '', { location: `${other.url}/count` }))
      await expect(core.client().countRows()).rejects.toMatchObject({ code: 'bad_request', status })
    }
    expect(other.requests).toEqual([])
  })

  it('that a fetch has followed all the same is no answer', async () => {
    const other = await coreThat(ok({ count: 1 }))
    const core = await coreThat(replies(307, '', { location: `${other.url}/count` }))
    const following: typeof fetch = (input, init) => fetch(input, { ...init, redirect: 'follow' })
    const client = core.client({ fetch: following })
    await expect(client.deleteRows([])).rejects.toMatchObject({ outcome: 'unknown' })
  })
})

import { describe, expect, it } from 'vitest'
import type { Entry } from '../entries.js'
import { BASE_URL, bound, open, WAYS } from './dpop-kit.js'

const OTHER_URLS = ['https://api.test/v1', 'HTTP://[2001:db8::1]', 'http://127.0.0.1:8080']

/** Asks for a target with a proof of another spelling of its URL. */
async function expectOfHtu(way: Entry, target: string, htu: string, status: number): Promise<void> {
  const senderConstraint = { dpop: { baseUrls: [BASE_URL, ...OTHER_URLS] } }
  const ask = await open(way, { senderConstraint })
  const answer = await ask({ target, headers: bound().headers({ htu }) })
  expect(answer.status).toBe(status)
  if (status === 401) expect(answer.event).toMatchObject({ reason: 'proof_invalid', member: 'htu' })
}

// More that is refused is in `hostileProofs`.
it.each([
  ['/', `${BASE_URL}`, 200],
  ['/', 'HTTPS://ORDERS.test:443/', 200],
  ['/', 'https://orders.test:/', 200],
  ['/?a=1', `${BASE_URL}/?b=2#c`, 200],
  ['/a', `${BASE_URL}/a?`, 200],
  ['/a%2fb', `${BASE_URL}/a%2Fb`, 200],
  ['/%7Ea%2D', `${BASE_URL}/~a-`, 200],
  ['/~a', `${BASE_URL}/%7ea`, 200],
  ['/a/./b/../c', `${BASE_URL}/a/c`, 401],
  ['/export/%2e%2E/orders', `${BASE_URL}/orders`, 401],
  ['/a.', `${BASE_URL}/a.`, 200],
  ['/...', `${BASE_URL}/...`, 200],
  ['/a/c', `${BASE_URL}/x/%2E%2e/a/./c`, 200],
  ['/a/..', `${BASE_URL}/`, 401],
  ['/a+b', `${BASE_URL}/a%2Bb`, 401],
  ['/a|b', `${BASE_URL}/a|b`, 200],
  ['/%C3%A9', `${BASE_URL}/%c3%a9`, 200],
  ['/a%', `${BASE_URL}/a%`, 401],
  ['/a\\b', `${BASE_URL}/a\\b`, 401],
  ['/a%5Cb', `${BASE_URL}/a%5cb`, 200],
  ['/', 'https://api.test/v1/', 200],
  ['/orders', 'https://api.test/v1/orders', 200],
  ['/../orders', 'https://api.test/orders', 401],
  ['/', 'http://[2001:DB8::1]:80/', 200],
  ['/', 'http://[2001:db8:0::1]/', 401],
  ['/', 'http://127.0.0.1:8080/', 200],
  ['/', 'http://127.1:8080/', 401],
])('a proof for the target %s and the htu %s is %i', (...row) =>
  expectOfHtu(WAYS[1] as Entry, ...row),
)

describe.each(WAYS)('a proof, through $entry', (way) => {
  it.each([
    ['/a%2fb', `${BASE_URL}/a%2Fb`, 200],
    ['http://orders.test/../a', `${BASE_URL}/a`, 401],
    ['//x', `${BASE_URL}//x`, 200],
    ['//x/y', `${BASE_URL}/x/y`, 401],
    ['//x/y', `${BASE_URL}/y`, 401],
    [`http://attacker.test/a?b`, `${BASE_URL}/a`, 200],
    ['https://attacker.test', `${BASE_URL}/`, 200],
    ['HTTP://[::1]:8080/a', `${BASE_URL}/a`, 200],
    // Express has another path for these.
    ['http://a;b/c', `${BASE_URL}/c`, 401],
    ['http://a%2fb/c', `${BASE_URL}/c`, 401],
    ['javascript://a/c', `${BASE_URL}/c`, 401],
    ['*c', `${BASE_URL}/`, 401],
    // Nor does RFC 9112 know a fragment: Express takes `//x@y` for an authority before one.
    ['/a#', `${BASE_URL}/a`, 401],
    ['//x@y/a#', `${BASE_URL}//x@y/a`, 401],
  ])('for the target %s and the htu %s is %i', (...row) => expectOfHtu(way, ...row))

  it.each([
    ['OPTIONS', '*', BASE_URL, 200],
    ['OPTIONS', '*', `${BASE_URL}/`, 200],
    ['OPTIONS', '*', 'https://api.test/v1', 200],
    ['OPTIONS', '*', `${BASE_URL}/*`, 401],
    ['OPTIONS', '*?x', BASE_URL, 401],
    ['GET', '*', BASE_URL, 401],
  ])(
    'for %s %s, which has an empty path, and the htu %s is %i',
    async (htm, target, htu, status) => {
      const senderConstraint = { dpop: { baseUrls: [BASE_URL, 'https://api.test/v1'] } }
      const ask = await open(way, { senderConstraint })
      const answer = await ask({ method: htm, target, headers: bound().headers({ htm, htu }) })
      expect(answer.status).toBe(status)
      if (status === 401) expect(answer.event).toMatchObject({ member: 'htu' })
    },
  )

  // From Node 26 on, Express finds no path in these and answers 404 before any middleware.
  it.each([
    ['http://a:b/c', `${BASE_URL}/c`],
    ['http://a:80b', `${BASE_URL}/`],
  ])('for the target %s and the htu %s is not let in', async (target, htu) => {
    const ask = await open(way)
    const answer = await ask({ target, headers: bound().headers({ htu }) })
    const major = Number.parseInt(process.versions.node, 10)
    expect(answer.status).toBe(way.entry.startsWith('Express') && major >= 26 ? 404 : 401)
  })
})

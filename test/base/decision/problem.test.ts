import { expect, it } from 'vitest'
import { challenged, type Schemes } from '../../../src/base/decision/problem.js'

it.each<[Schemes, string | undefined, string]>([
  ['Bearer', undefined, 'Bearer realm="service"'],
  ['DPoP', undefined, 'DPoP algs="ES256"'],
  ['Bearer', 'x', 'Bearer realm="service", error="x"'],
  ['Bearer, DPoP', 'x', 'Bearer realm="service", error="x", DPoP algs="ES256", error="x"'],
])('a refusal that challenges for %s with the error %s', (schemes, error, challenge) => {
  const body = '{"type":"about:blank","title":"Unauthorized","status":401}'
  expect(challenged(401, 'Unauthorized', error)[schemes]).toEqual({
    status: 401,
    body,
    headers: [
      ['Content-Type', 'application/problem+json'],
      ['Content-Length', String(body.length)],
      ['Cache-Control', 'no-store'],
      ['WWW-Authenticate', challenge],
    ],
  })
})

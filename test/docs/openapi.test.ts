import { Validator } from '@seriousme/openapi-schema-validator'
import express from 'express'
import { requirePermissions, serviceAuth } from 'express-service-auth'
import { expect, it } from 'vitest'
import { createTestIssuer } from '../support/issuer/test-issuer.js'
import { serve } from '../support/receiver/serve.js'
import { readDocument } from './blocks.js'
import { blocksOf } from './markdown.js'

interface Referring {
  readonly $ref: string
}

interface Described {
  readonly headers?: Readonly<Record<string, Referring>>
}

interface Fragment {
  readonly paths: { '/orders': { post: { responses: Readonly<Record<string, Referring>> } } }
  readonly components: {
    readonly responses: Readonly<Record<string, Described>>
    readonly headers: Readonly<Record<string, { schema: HeaderSchema }>>
    readonly schemas: { Problem: { properties: { type: { enum: readonly string[] } } } }
  }
}

interface HeaderSchema {
  readonly enum?: readonly string[]
  readonly pattern?: string
}

const [text = ''] = blocksOf('yaml', await readDocument('docs/openapi.md'))
const validator = new Validator()
const result = await validator.validate(text)
const fragment = validator.specification as unknown as Fragment

it('is a valid description in OpenAPI 3.1', () => {
  expect(result).toEqual({ valid: true })
  expect(validator.version).toBe('3.1')
})

const DESCRIBED_HEADERS = ['WWW-Authenticate', 'Retry-After']

const nameOf = ({ $ref }: Referring): string => $ref.split('/').at(-1) ?? ''

/** What the fragment does not say of a response. */
async function undescribed(response: Response): Promise<readonly string[]> {
  const { responses, headers, schemas } = fragment.components
  const reference = fragment.paths['/orders'].post.responses[response.status]
  const described = reference && responses[nameOf(reference)]
  if (described === undefined) return [`status ${response.status}`]
  const { type, status } = (await response.json()) as { type: string; status: number }
  const faults = DESCRIBED_HEADERS.filter((name) => {
    const value = response.headers.get(name)
    const header = described.headers?.[name]
    if (value === null) return false
    const schema = header && headers[nameOf(header)]?.schema
    return !schema?.enum?.includes(value) && !new RegExp(schema?.pattern ?? '(?!)').test(value)
  })
  if (!schemas.Problem.properties.type.enum.includes(type)) faults.push(`type ${type}`)
  if (status !== response.status) faults.push(`member status ${status}`)
  return faults
}

it.each([
  ['which accepts proofs', false],
  ['which requires proofs', true],
])('describes the challenges of a receiver %s', async (_, required) => {
  const issuer = await createTestIssuer()
  const dpop = { baseUrls: ['https://orders.test'] }
  const auth = serviceAuth(issuer.policy({ senderConstraint: { dpop, required } }))
  const app = express().use(auth, requirePermissions('orders:write'))
  const served = await serve(app.post('/orders', (_req, res) => res.sendStatus(201)))
  const { token, proof } = issuer.boundToken({ permissions: [] })
  const proved = {
    authorization: `DPoP ${token}`,
    dpop: proof({ method: 'POST', url: 'https://orders.test/orders' }),
  }
  const sent: Record<string, string>[] = [{}, { authorization: `Bearer ${token}` }, proved]
  const answers = await Promise.all(
    sent.map((headers) => fetch(`${served.url}/orders`, { method: 'POST', headers })),
  )
  await Promise.all([served.close(), issuer.close()])
  auth.close()
  expect(answers.map(({ status }) => status)).toEqual([401, 401, 403])
  for (const answer of answers) {
    expect(answer.headers.get('www-authenticate')).toContain('DPoP algs="ES256"')
    expect(await undescribed(answer)).toEqual([])
  }
})

import { Validator } from '@seriousme/openapi-schema-validator'
import { expect, it } from 'vitest'
import type { Reason } from '../../src/base/decision/reason.js'
import { refusalOf } from '../../src/middleware/refusal-table.js'
import { readDocument } from './documents.js'
import { blocksOf, namesIn, tableRows } from './markdown.js'

const [text = ''] = blocksOf('yaml', await readDocument('docs/openapi.md'))
const validator = new Validator()
const result = await validator.validate(text)
const { paths, components } = validator.specification as unknown as Fragment

interface Fragment {
  readonly paths: { '/orders': { post: { responses: Readonly<Record<string, { $ref: string }>> } } }
  readonly components: {
    readonly responses: Readonly<Record<string, { headers?: object }>>
    readonly schemas: { Problem: { properties: { type: { enum: readonly string[] } } } }
  }
}

it('is a valid description in OpenAPI 3.1', () => {
  expect(result).toEqual({ valid: true })
  expect(validator.version).toBe('3.1')
})

const reasons = await readDocument('docs/reasons.md')
const listed = ['Refused tokens and callers', 'Undecided', 'Refused writes'].flatMap((heading) =>
  tableRows(reasons, heading).flatMap(([names]) => namesIn(names)),
)

it.each(listed)('describes the response to %s', (reason) => {
  const { status, headers, body } = refusalOf(reason as Reason, 'Bearer, DPoP')
  const name = paths['/orders'].post.responses[status]?.$ref.split('/').at(-1) ?? ''
  const described = Object.keys(components.responses[name]?.headers ?? {})
  const sent = headers.map(([header]) => header)
  for (const header of ['WWW-Authenticate', 'Retry-After']) {
    if (sent.includes(header)) expect(described).toContain(header)
  }
  expect(components.schemas.Problem.properties.type.enum).toContain(JSON.parse(body).type)
})

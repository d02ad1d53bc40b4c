import { serviceAuth } from 'express-service-auth'
import { expect, it } from 'vitest'
import { readDocument } from './documents.js'
import { blocksOf } from './markdown.js'

const policies = blocksOf('json', await readDocument('docs/issuers.md')).map((text) =>
  JSON.parse(text),
)

it('has a policy for each issuer', () => {
  expect(policies).toHaveLength(5)
})

it.each(policies)('has a policy for $issuer that serviceAuth takes', (policy) => {
  expect(() => serviceAuth(policy).close()).not.toThrow()
})

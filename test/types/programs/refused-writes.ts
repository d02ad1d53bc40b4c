// What a handler must not change.
import express from 'express'
import { serviceOf } from 'express-service-auth'

const app = express()

app.get('/', (req) => {
  const service = serviceOf(req)
  // @ts-expect-error read-only
  service.name = 'billing'
  // @ts-expect-error read-only
  service.permissions = new Set(['admin'])
  // @ts-expect-error a set that cannot be added to
  service.permissions.add('admin')
  // @ts-expect-error read-only
  service.claims['x'] = 1
  // @ts-expect-error read-only
  service.claims = {}
  // @ts-expect-error the value of a claim is not known
  const custom: string = service.claims['custom']
  // @ts-expect-error may be absent
  const tokenId: string = service.tokenId
  // @ts-expect-error there is no identity before serviceAuth has run
  const name: string = req.service.name
  // @ts-expect-error read-only
  if (req.service) req.service.permissions = new Set()
  // @ts-expect-error there is no key before requireIdempotencyKey has run
  req.idempotency.release()
  // @ts-expect-error read-only
  if (req.idempotency) req.idempotency.fence = 1
  return [custom, tokenId, name]
})

// @ts-expect-error a request is required
serviceOf()
// @ts-expect-error not a request
serviceOf({ name: 'billing' })

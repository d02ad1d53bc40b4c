// Options of everything but serviceAuth that must not compile.
import {
  memoryStore,
  remoteKeySet,
  requireIdempotencyKey,
  requirePermissions,
  requireSingleUse,
} from 'express-service-auth'

const store = memoryStore()

// @ts-expect-error at least one name
requirePermissions()
// @ts-expect-error names, not a list
requirePermissions(['orders:read'])

// @ts-expect-error the store is required
requireSingleUse({})
// @ts-expect-error the store is an option, not the argument
requireSingleUse(store)
// @ts-expect-error an unknown option
requireSingleUse({ store, ttlSeconds: 60 })

// @ts-expect-error the store is required
requireIdempotencyKey({})
// @ts-expect-error 'refuse' or 'rerun'
requireIdempotencyKey({ store, whenAbandoned: 'retry' })
// @ts-expect-error seconds are a number
requireIdempotencyKey({ store, retentionSeconds: '1d' })
// @ts-expect-error a fingerprint is computed from the request
requireIdempotencyKey({ store, fingerprint: 'constant' })
// @ts-expect-error an operation is a string
requireIdempotencyKey({ store, operation: () => 7 })
// @ts-expect-error an unknown option
requireIdempotencyKey({ store, ttl: 60 })

// @ts-expect-error the address is required
remoteKeySet({})
// @ts-expect-error options, not the address itself
remoteKeySet('https://api.example.com/auth/jwt/jwks.json')
// @ts-expect-error an unknown option
remoteKeySet({ jwksUri: 'https://api.example.com/jwks.json', cacheMaxAge: 600 })

// @ts-expect-error no options
memoryStore({ max: 10 })

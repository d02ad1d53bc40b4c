// Token sources that must not compile.
import { type TokenSource, tokenSource } from 'express-service-auth/client'

const core = { baseUrl: 'https://core.example', apiKey: async () => 'the-key' }
const apiDomain = 'https://api.example.com'
const claims = { aud: 'orders', sub: 'billing', source: 'a', token_type: 'b', permissions: [] }

const source: TokenSource = tokenSource({ core, apiDomain, claims })

// @ts-expect-error the API domain is required
tokenSource({ core, claims })
// @ts-expect-error the core is an object
tokenSource({ core: 'https://core.example', apiDomain, claims })
// @ts-expect-error the source chooses the identifier
tokenSource({ core, apiDomain, claims: { ...claims, aud: 'orders', jti: 'x' } })
// @ts-expect-error one audience
tokenSource({ core, apiDomain, claims: { ...claims, aud: ['orders'] } })
// @ts-expect-error there is no other algorithm
tokenSource({ core, apiDomain, claims, algorithm: 'RS512' })
// @ts-expect-error a token that was refused is a text
void source.token({ after: 7 })

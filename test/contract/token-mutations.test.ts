import fc from 'fast-check'
import { afterAll, describe, expect, it } from 'vitest'
import { mutantsOf } from '../fuzz/mutations.js'
import { asHeaderValue } from '../fuzz/wire.js'
import { createTestIssuer } from '../support/issuer/test-issuer.js'
import { EXPRESS_MAJORS } from '../support/receiver/express-majors.js'
import { authFor, startReceiver } from '../support/receiver/receiver.js'
import { INVALID_TOKEN } from '../support/receiver/refusal-bytes.js'

const issuer = await createTestIssuer()
afterAll(() => issuer.close())

const GOOD = [
  issuer.token(),
  issuer.token({ sub: 'billing', jti: undefined }),
  issuer.token({ permissions: [], nested: { a: [1, { b: null }] } }),
  issuer.token({ text: 'é\u0000\ud800' }, { typ: undefined }),
]

/** Node takes blanks and tabs off both ends of a header's value: what differs there is the same. */
const trimmed = (token: string): string => token.replace(/^[\t ]+|[\t ]+$/g, '')

describe.each(EXPRESS_MAJORS)('mutations of good tokens, on $major', ({ express }) => {
  it('never pass, and all get the same bytes', { timeout: 60_000 }, async () => {
    const receiver = await startReceiver({
      express,
      mount: (app) => app.use(authFor(issuer.policy())),
    })
    for (const token of GOOD) expect((await receiver.call(token)).status).toBe(200)
    const handled = receiver.handled
    await fc.assert(
      fc.asyncProperty(mutantsOf(GOOD).map(asHeaderValue), async (mutant) => {
        fc.pre(!GOOD.includes(trimmed(mutant)) && mutant.length < 12_000)
        expect(await receiver.rawWith(`Bearer ${mutant}`)).toBe(INVALID_TOKEN)
      }),
      { numRuns: 400 },
    )
    expect(receiver.handled).toBe(handled)
    expect(receiver.errors).toEqual([])
    for (const token of GOOD) expect((await receiver.call(token)).status).toBe(200)
  })
})

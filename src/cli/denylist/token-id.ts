import { withoutQuery } from '../../base/decision/key-set-event.js'
import { isText } from '../../verification/denylist/check-entry.js'
import { reasonInWords } from '../../verification/key-set/fetch-key-set.js'
import type { Screened } from '../../verification/key-set/usable-keys.js'
import { keySetAddressFaults, keySetAddressOf } from '../../verification/policy/key-set-address.js'
import { screenToken } from '../../verification/token/parse-token.js'
import { verifyToken } from '../../verification/token/verify.js'
import { askKeySet } from '../doctor/request-key-set.js'
import { outOfReach, wrong } from '../frame/command-failure.js'
import type { NamedIssuer } from '../input/policy-file.js'

/**
 * The key set of the policy or, without one, the one at the default address of the issuer.
 *
 * @throws CommandFailure (2) when the issuer has no such address, (3) when it is out of reach.
 */
async function keySetOf(named: NamedIssuer, hint: string): Promise<Screened> {
  const { outcome, jwksUri } = await askKeySet(addressOf(named))
  if (outcome.ok) return outcome.screened
  const why = reasonInWords(outcome.failure)
  const message = `the key set at ${withoutQuery(jwksUri)} is out of reach (${why}); nothing was changed`
  throw outOfReach('key_set_unavailable', `${message}. ${hint}`)
}

function addressOf({ issuer, policy }: NamedIssuer): string {
  if (policy === undefined && keySetAddressFaults({ issuer }).length > 0) {
    throw wrong('usage', 'the key set is not at an address made of --issuer: give --policy')
  }
  const address = policy?.keySet ?? keySetAddressOf({ issuer })
  if (address.kind !== 'own') throw new TypeError('a policy of JSON has no shared key set')
  return address.jwksUri
}

/** @throws CommandFailure as `keySetOf`, and (2) for a key id that the set lacks. */
export async function checkKeyId(named: NamedIssuer, keyId: string): Promise<void> {
  const hint = '--unlisted denies the key id without asking'
  const { keys, skipped } = await keySetOf(named, hint)
  if (keys.has(keyId) || skipped.some((key) => key.keyId === keyId)) return
  throw wrong('usage', `the key set has no key with this id. ${hint}`)
}

const BEARER = /^bearer /i

/**
 * The `jti` of a token that the issuer has signed, expired or not.
 *
 * @throws CommandFailure (2) without a word of the token; (3) when the key set is out of reach.
 */
export async function tokenIdOf(text: string, named: NamedIssuer): Promise<string> {
  const screened = screenToken(text.replace(BEARER, ''))
  if (!screened.ok) {
    throw wrong('input', `standard input holds no service token (${screened.reason})`)
  }
  const { keys } = await keySetOf(named, 'A jti can be given as VALUE instead')
  const source = {
    current: (kid: string) => keys.get(kid),
    find: async (kid: string) => keys.get(kid),
  }
  const verified = await verifyToken(screened.value, source)
  if (!verified.ok) {
    throw wrong('input', `the token is not signed by the issuer (${verified.reason})`)
  }
  const { iss, jti } = verified.value.payload.members
  if (iss !== named.issuer) throw wrong('input', 'the token is of another issuer')
  if (isText(jti)) return jti
  throw wrong(
    'input',
    'the token has no jti of 1 to 256 characters: deny its caller, or all with issued-before',
  )
}

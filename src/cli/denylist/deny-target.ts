import { z } from 'zod'
import { withoutQuery } from '../../base/decision/key-set-event.js'
import { isShortText } from '../../base/options.js'
import type { DeniedKind } from '../../verification/denylist/denylist-entry.js'
import { formatFailure } from '../../verification/key-set/fetch-key-set.js'
import type { UsableKeys } from '../../verification/key-set/usable-keys.js'
import { keySetAddressFaults, readKeySetAddress } from '../../verification/policy/policy.js'
import { parseToken, verifySignature } from '../../verification/token/signed-token.js'
import { requestKeySet } from '../doctor/published-key-set.js'
import type { Arguments } from '../frame/arguments.js'
import { parseDuration } from '../frame/arguments.js'
import type { CommandContext } from '../frame/command.js'
import { type CommandFailure, unreachableError, usageError } from '../frame/command-failure.js'
import type { NamedIssuer } from '../input/policy-file.js'
import { readStandardInput } from '../input/standard-input.js'

/** The arguments for each kind, for a message. */
const FORMS: Readonly<Record<DeniedKind, string>> = {
  caller: 'caller NAME',
  key: 'key KID',
  token: 'token JTI',
  'issued-before': 'issued-before now',
}

/** @throws CommandFailure (2) */
export function readKind({ values: [text] }: Arguments): DeniedKind {
  if (text !== undefined && Object.hasOwn(FORMS, text)) return text as DeniedKind
  throw usageError(
    `the first argument must be caller, key, token or issued-before, such as ${FORMS.caller}`,
  )
}

export const valueMissing = (kind: DeniedKind): CommandFailure =>
  usageError(`${kind} needs a value: write ${FORMS[kind]}`)

/** The options that only some kinds have. */
const KINDS_OF_OPTION: Readonly<Record<string, readonly DeniedKind[]>> = {
  unlisted: ['caller', 'key'],
  tolerance: ['issued-before'],
  'token-stdin': ['token'],
}

/** Returns a value that may depend on the time of Redis's clock, in seconds since the epoch. */
type ValueAt = (serverSeconds: number) => string | number

/**
 * Reads what `deny` denies, and checks a caller against the policy, and a key or a token against the key
 * set.
 *
 * @throws CommandFailure
 */
export async function readValue(
  context: CommandContext,
  kind: DeniedKind,
  named: NamedIssuer,
): Promise<ValueAt> {
  const args = context.arguments
  for (const [name, kinds] of Object.entries(KINDS_OF_OPTION)) {
    if (!kinds.includes(kind)) args.refuse([name], `is only for ${kinds.join(' and ')}`)
  }
  const [, text] = args.values
  if (args.has('token-stdin')) {
    if (text !== undefined) throw usageError('--token-stdin takes the place of VALUE')
    const tokenId = await tokenIdOf(await readStandardInput(context, 'the token'), named)
    return () => tokenId
  }
  if (text === undefined) throw valueMissing(kind)
  if (kind === 'issued-before') return readCutOff(text, args)
  if (kind === 'caller' && !args.has('unlisted')) checkApproved(named, text)
  if (kind === 'key' && !args.has('unlisted')) await checkKeyId(named, text)
  return () => text
}

function checkApproved({ policy }: NamedIssuer, caller: string): void {
  if (policy === undefined || policy.ceilings.has(caller)) return
  throw usageError('the policy does not approve a caller of this name; --unlisted denies it anyway')
}

/**
 * Fetches the key set of the policy or, without one, of the issuer's default address. Errors end with `hint`.
 *
 * @throws CommandFailure (2) if the issuer has no default address, (3) if the key set cannot be reached.
 */
async function keySetOf(named: NamedIssuer, hint: string): Promise<UsableKeys> {
  const { outcome, jwksUri } = await requestKeySet(addressOf(named))
  if (outcome.ok) return outcome.screened
  const why = formatFailure(outcome.failure)
  const message = `the key set at ${withoutQuery(jwksUri)} is unreachable (${why}); nothing changed`
  throw unreachableError('key_set_unavailable', `${message}. ${hint}`)
}

function addressOf({ issuer, policy }: NamedIssuer): string {
  if (policy === undefined && keySetAddressFaults({ issuer }).length > 0) {
    throw usageError('the address of the key set cannot be derived from --issuer: use --policy')
  }
  const address = policy?.keySet ?? readKeySetAddress({ issuer })
  if (address.kind !== 'own') throw new TypeError('a policy of JSON has no shared key set')
  return address.jwksUri
}

/** @throws CommandFailure like `keySetOf`, and (2) if the key set lacks the key id. */
async function checkKeyId(named: NamedIssuer, keyId: string): Promise<void> {
  const hint = '--unlisted denies the key id without this check'
  const { keys, skipped } = await keySetOf(named, hint)
  if (keys.has(keyId) || skipped.some((key) => key.keyId === keyId)) return
  throw usageError(`the key set has no key with this id. ${hint}`)
}

const BEARER = /^bearer /i

/**
 * Returns the `jti` of a token that the issuer signed, even if the token has expired.
 *
 * @throws CommandFailure (2) without any part of the token, (3) if the key set cannot be reached.
 */
async function tokenIdOf(text: string, named: NamedIssuer): Promise<string> {
  const screened = parseToken(text.replace(BEARER, ''))
  if (!screened.ok) {
    throw usageError(
      `standard input does not contain a service token (${screened.reason})`,
      'input',
    )
  }
  const { keys } = await keySetOf(named, 'Alternatively, pass the jti as VALUE')
  const source = {
    current: (kid: string) => keys.get(kid),
    find: async (kid: string) => keys.get(kid),
  }
  const verified = await verifySignature(screened.value, source)
  if (!verified.ok) {
    throw usageError(`the token is not signed by the issuer (${verified.reason})`, 'input')
  }
  const { iss, jti } = verified.value.payload.members
  if (iss !== named.issuer) throw usageError('the token is from another issuer', 'input')
  if (isShortText(jti)) return jti
  throw usageError(
    'the token has no jti of 1 to 256 characters: deny its caller, or all tokens with issued-before',
    'input',
  )
}

const SECONDS = /^\d{1,11}(?:\.\d{1,3})?$/
const MINUTE_PRECISION = -1
const ISO_TIME = z.union([
  z.iso.datetime({ offset: true }),
  z.iso.datetime({ offset: true, precision: MINUTE_PRECISION }),
])
/** A later cut-off would deny tokens that are not issued yet. */
export const MAX_AHEAD_SECONDS = 60
const TOLERANCE = { minMs: 0, maxMs: (MAX_AHEAD_SECONDS - 1) * 1000 }

/**
 * Reads a cut-off. `now` means the second after the server's, plus the tolerance, so that every token of the
 * current second is denied.
 *
 * @throws CommandFailure (2)
 */
function readCutOff(text: string, args: Arguments): ValueAt {
  if (text === 'now') {
    const toleranceMs = parseDuration('--tolerance', args.text('tolerance') ?? '5s', TOLERANCE)
    return (serverSeconds) => Math.floor(serverSeconds) + 1 + Math.ceil(toleranceMs / 1000)
  }
  args.refuse(['tolerance'], 'is only for issued-before now')
  const isTime = ISO_TIME.safeParse(text).success
  const second = isTime ? Date.parse(text) / 1000 : Number(SECONDS.exec(text)?.[0])
  if (second >= 0) return () => second
  throw usageError(
    'issued-before expects now, seconds since the epoch, or a time with a zone, such as ' +
      '2027-01-31T12:00:00Z',
  )
}

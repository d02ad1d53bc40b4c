import { withoutQuery } from '../../base/decision/key-set-event.js'
import { isShortText } from '../../base/options.js'
import type { DeniedKind } from '../../verification/denylist/denylist-entry.js'
import { formatFailure } from '../../verification/key-set/fetch-key-set.js'
import type { UsableKeys } from '../../verification/key-set/usable-keys.js'
import {
  keySetAddressFaults,
  readKeySetAddress,
} from '../../verification/policy/key-set-address.js'
import { parseToken, verifySignature } from '../../verification/token/signed-token.js'
import { requestKeySet } from '../doctor/request-key-set.js'
import type { Arguments } from '../frame/arguments.js'
import type { CommandContext } from '../frame/command.js'
import { type CommandFailure, unreachableError, usageError } from '../frame/command-failure.js'
import { parseDuration } from '../frame/duration.js'
import type { NamedIssuer } from '../input/policy-file.js'
import { readStandardInput } from '../input/standard-input.js'
import { shortText } from './change-options.js'

export type DenyTarget =
  | { readonly kind: 'caller' | 'key' | 'token'; readonly value: string }
  | { readonly kind: 'issued-before'; readonly cutOff: IssuedBefore }

/** The arguments for each kind, for a message. */
const FORMS: Readonly<Record<DeniedKind, string>> = {
  caller: 'caller NAME',
  key: 'key KID',
  token: 'token JTI',
  'issued-before': 'issued-before now',
}

/** @throws CommandFailure (2) */
export function readKind(text: string | undefined): DeniedKind {
  if (text !== undefined && Object.hasOwn(FORMS, text)) return text as DeniedKind
  throw usageError(
    'usage',
    `the first argument must be caller, key, token or issued-before, such as ${FORMS.caller}`,
  )
}

export const valueMissing = (kind: DeniedKind): CommandFailure =>
  usageError('usage', `${kind} needs a value: write ${FORMS[kind]}`)

/**
 * Reads the target from the arguments of `deny`, and checks it against the policy and the key set.
 *
 * @throws CommandFailure
 */
export async function readTarget(context: CommandContext, named: NamedIssuer): Promise<DenyTarget> {
  const args = context.arguments
  const [first, value] = args.values
  const kind = readKind(first)
  if (args.flag('unlisted') && kind !== 'caller' && kind !== 'key') {
    throw usageError('usage', '--unlisted is only for caller and key')
  }
  if (args.text('tolerance') !== undefined && kind !== 'issued-before') {
    throw usageError('usage', '--tolerance is only for issued-before now')
  }
  if (args.flag('token-stdin')) {
    if (kind !== 'token' || value !== undefined) {
      throw usageError('usage', '--token-stdin is only for token, without a VALUE')
    }
    const text = await readStandardInput(context, 'the token')
    return { kind, value: await tokenIdOf(text, named) }
  }
  if (value === undefined) throw valueMissing(kind)
  if (kind === 'issued-before') return { kind, cutOff: readIssuedBefore(value, args) }
  const target = { kind, value: shortText(`the value of ${kind}`, value) }
  if (!args.flag('unlisted')) await checkListed(target, named)
  return target
}

async function checkListed(
  { kind, value }: { readonly kind: string; readonly value: string },
  named: NamedIssuer,
): Promise<void> {
  if (kind === 'key') return await checkKeyId(named, value)
  const ceilings = named.policy?.ceilings
  if (kind !== 'caller' || ceilings === undefined || ceilings.has(value)) return
  throw usageError(
    'usage',
    'the policy does not approve a caller of this name; --unlisted denies it anyway',
  )
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
    throw usageError(
      'usage',
      'the address of the key set cannot be derived from --issuer: use --policy',
    )
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
  throw usageError('usage', `the key set has no key with this id. ${hint}`)
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
      'input',
      `standard input does not contain a service token (${screened.reason})`,
    )
  }
  const { keys } = await keySetOf(named, 'Alternatively, pass the jti as VALUE')
  const source = {
    current: (kid: string) => keys.get(kid),
    find: async (kid: string) => keys.get(kid),
  }
  const verified = await verifySignature(screened.value, source)
  if (!verified.ok) {
    throw usageError('input', `the token is not signed by the issuer (${verified.reason})`)
  }
  const { iss, jti } = verified.value.payload.members
  if (iss !== named.issuer) throw usageError('input', 'the token is from another issuer')
  if (isShortText(jti)) return jti
  throw usageError(
    'input',
    'the token has no jti of 1 to 256 characters: deny its caller, or all tokens with issued-before',
  )
}

/** A requested cut-off. For `now`, Redis's clock decides. */
type IssuedBefore =
  | { readonly kind: 'now'; readonly toleranceSeconds: number }
  | { readonly kind: 'second'; readonly second: number }

const SECONDS = /^\d{1,11}(?:\.\d{1,3})?$/
const MILLISECONDS = /^\d{12,}$/
const ISO_TIME = /^(\d{4}-\d\d-\d\d)T\d\d:\d\d(?::\d\d(?:\.\d{1,3})?)?(?:Z|[+-]\d\d:\d\d)$/
const MAX_AHEAD_SECONDS = 60
const TOLERANCE = { minMs: 0, maxMs: (MAX_AHEAD_SECONDS - 1) * 1000 }

/** @throws CommandFailure (2) */
export function readIssuedBefore(text: string, args: Arguments): IssuedBefore {
  const tolerance = args.text('tolerance')
  if (text === 'now') {
    const toleranceMs = parseDuration('--tolerance', tolerance ?? '5s', TOLERANCE)
    return { kind: 'now', toleranceSeconds: Math.ceil(toleranceMs / 1000) }
  }
  if (tolerance !== undefined)
    throw usageError('usage', '--tolerance is only for issued-before now')
  if (MILLISECONDS.test(text)) {
    throw usageError('usage', 'issued-before expects seconds since the epoch, not milliseconds')
  }
  const second = SECONDS.test(text) ? Number(text) : secondOf(text)
  if (!(second >= 0)) {
    throw usageError(
      'usage',
      'issued-before expects now, seconds since the epoch, or a time with a zone, such as ' +
        '2027-01-31T12:00:00Z',
    )
  }
  return { kind: 'second', second }
}

/** Returns `NaN` for an invalid time, also for 30 February, which JavaScript takes for 2 March. */
function secondOf(text: string): number {
  const [, day] = ISO_TIME.exec(text) ?? []
  const midnight = new Date(`${day}T00:00:00Z`)
  const isRealDay = day !== undefined && Number.isFinite(midnight.getTime())
  if (!isRealDay || !midnight.toISOString().startsWith(day)) return Number.NaN
  return Date.parse(text) / 1000
}

/**
 * Returns the cut-off in seconds. `now` means the second after the server's, plus the
 * tolerance, so that every token of the current second is denied.
 *
 * @throws CommandFailure (2) for a cut-off that would deny future tokens.
 */
export function issuedBeforeAt(cutOff: IssuedBefore, serverSeconds: number): number {
  if (cutOff.kind === 'now') return Math.floor(serverSeconds) + 1 + cutOff.toleranceSeconds
  if (cutOff.second <= serverSeconds + MAX_AHEAD_SECONDS) return cutOff.second
  throw usageError('usage', `the cut-off is more than ${MAX_AHEAD_SECONDS} s ahead of Redis's time`)
}

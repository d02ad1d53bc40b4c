import type { DeniedKind } from '../../verification/denylist/denylist-entry.js'
import type { CommandContext } from '../frame/command.js'
import { wrong } from '../frame/command-failure.js'
import type { NamedIssuer } from '../input/policy-file.js'
import { readStandardInput } from '../input/standard-input.js'
import { textOf } from './change-options.js'
import { type CutOff, readCutOff } from './issued-before.js'
import { checkKeyId, tokenIdOf } from './token-id.js'

/** What is to be denied. */
export type DeniedThing =
  | { readonly kind: 'caller' | 'key' | 'token'; readonly value: string }
  | { readonly kind: 'issued-before'; readonly cutOff: CutOff }

const KINDS: readonly string[] = ['caller', 'key', 'token', 'issued-before']

/** @throws CommandFailure (2) */
export function readKind(text: string | undefined): DeniedKind {
  if (text !== undefined && KINDS.includes(text)) return text as DeniedKind
  throw wrong('usage', 'the first argument must be caller, key, token or issued-before')
}

/**
 * What the arguments of `deny` name, checked against policy and key set.
 *
 * @throws CommandFailure
 */
export async function readThing(context: CommandContext, named: NamedIssuer): Promise<DeniedThing> {
  const given = context.arguments
  const [first, value] = given.values
  const kind = readKind(first)
  if (given.flag('unlisted') && kind !== 'caller' && kind !== 'key') {
    throw wrong('usage', '--unlisted is for caller and key')
  }
  if (given.text('tolerance') !== undefined && kind !== 'issued-before') {
    throw wrong('usage', '--tolerance is for issued-before now')
  }
  if (given.flag('token-stdin')) {
    if (kind !== 'token' || value !== undefined) {
      throw wrong('usage', '--token-stdin is for token, without a VALUE')
    }
    const text = await readStandardInput(context, 'the token')
    return { kind, value: await tokenIdOf(text, named) }
  }
  if (value === undefined) throw wrong('usage', `${kind} needs a value`)
  if (kind === 'issued-before') return { kind, cutOff: readCutOff(value, given) }
  const thing = { kind, value: textOf(`the value of ${kind}`, value) }
  if (!given.flag('unlisted')) await checkListed(thing, named)
  return thing
}

async function checkListed(
  { kind, value }: { readonly kind: string; readonly value: string },
  named: NamedIssuer,
): Promise<void> {
  if (kind === 'key') return await checkKeyId(named, value)
  const ceilings = named.policy?.ceilings
  if (kind !== 'caller' || ceilings === undefined || ceilings.has(value)) return
  throw wrong('usage', 'the policy approves no caller of this name; --unlisted denies it anyway')
}

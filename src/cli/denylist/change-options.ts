import { userInfo } from 'node:os'
import { isShortText } from '../../base/options.js'
import type { OptionSpecs } from '../frame/arguments.js'
import type { CommandContext } from '../frame/command.js'
import { usageError } from '../frame/command-failure.js'
import { parseDuration } from '../frame/duration.js'
import { ISSUER_OPTION, POLICY_OPTION } from '../input/policy-file.js'
import { REDIS_OPTIONS } from '../redis/redis-client.js'

/** Options that `deny` and `allow` share. */
export const CHANGE_OPTIONS: OptionSpecs = {
  ...ISSUER_OPTION,
  ...POLICY_OPTION,
  reason: { kind: 'text', value: 'TEXT', help: 'the reason, as the denylist shows it' },
  by: { kind: 'text', value: 'NAME', help: 'the author (default: the current user)' },
  wait: { kind: 'text', value: 'TIME', help: 'how long to wait for the receivers (default: 5s)' },
  ...REDIS_OPTIONS,
}

type AuthorInput = Pick<CommandContext, 'arguments' | 'env'>

/** @throws CommandFailure (2) */
export function readAuthor({ arguments: args, env }: AuthorInput): { reason: string; by: string } {
  const reason = shortText('--reason', args.required('reason'))
  return { reason, by: shortText('--by', args.text('by') ?? userName(env)) }
}

/** @throws CommandFailure (2) */
export const readWaitMs = ({ arguments: args }: AuthorInput): number =>
  parseDuration('--wait', args.text('wait') ?? '5s', { minMs: 0, maxMs: 600_000 })

/** Up to ten years. */
const FOR_RANGE = { minMs: 1000, maxMs: 3650 * 86_400_000 }

/**
 * Reads `--for`. Returns a function from the server's time to the end of the entry; `null` means no end.
 *
 * @throws CommandFailure (2)
 */
export function readEnd(duration: string): (serverSeconds: number) => number | null {
  if (duration === 'forever') return () => null
  const forMs = parseDuration('--for', duration, FOR_RANGE)
  return (serverSeconds) => Math.ceil(serverSeconds + forMs / 1000)
}

/** @throws CommandFailure (2), without the text. */
export function shortText(name: string, text: string): string {
  if (isShortText(text)) return text
  throw usageError('usage', `${name} must be a well-formed string of 1 to 256 characters`)
}

export function userName(env: CommandContext['env']): string {
  try {
    return userInfo().username || 'unknown'
  } catch {
    // The user of a container may have no name.
    return env['USER'] || 'unknown'
  }
}

import { readKey } from '../../base/idempotency-key.js'
import { operationOf, recordKey } from '../../idempotency/fingerprint.js'
import type { OptionSpecs } from '../frame/arguments.js'
import type { CommandContext } from '../frame/command.js'
import { usageError } from '../frame/command-failure.js'
import { ISSUER_OPTION, POLICY_OPTION, readIssuer } from '../input/policy-file.js'
import { readStandardInput } from '../input/standard-input.js'

/** The options that, with the key that a caller sent, identify a record. */
const SCOPE_OPTIONS: OptionSpecs = {
  audience: { kind: 'text', value: 'AUD', help: 'the exact aud (default: that of --policy)' },
  caller: { kind: 'text', value: 'NAME', help: 'the caller that sent the key' },
  operation: { kind: 'text', value: 'NAME', help: 'the operation, if the receiver names it' },
  method: { kind: 'text', value: 'METHOD', help: 'otherwise, the method of the request' },
  mount: {
    kind: 'text',
    value: 'PATH',
    help: 'the path of the router as in the request; empty without a router',
    mayBeEmpty: true,
  },
  route: {
    kind: 'text',
    value: 'PATTERN',
    help: 'the path of the route as in the code of the receiver',
  },
  ...ISSUER_OPTION,
  ...POLICY_OPTION,
}

export const RECORD_OPTIONS: OptionSpecs = {
  'key-stdin': {
    kind: 'flag',
    help: 'find the record by the key on standard input and the options below',
  },
  ...SCOPE_OPTIONS,
}

const RECORD_FORM = /^[A-Za-z0-9_-]{24}$/

type Named = Pick<CommandContext, 'arguments' | 'stdin' | 'note'>

/**
 * Reads the name of the record.
 *
 * @throws CommandFailure (2)
 */
export async function readRecordName(context: Named): Promise<string> {
  const args = context.arguments
  const [record] = args.values
  if (args.flag('key-stdin')) {
    if (record === undefined) return await recordOfKey(context)
    throw usageError('usage', 'use either a record or --key-stdin')
  }
  if (record === undefined) throw usageError('usage', 'a record or --key-stdin is missing')
  const stray = Object.keys(SCOPE_OPTIONS).find((name) => args.text(name) !== undefined)
  if (stray !== undefined) throw usageError('usage', `--${stray} requires --key-stdin`)
  if (RECORD_FORM.test(record)) return record
  throw usageError(
    'usage',
    'the name of a record has 24 characters of A-Za-z0-9_-, as in the events; pass a key on ' +
      'standard input with --key-stdin',
  )
}

async function recordOfKey(context: Named): Promise<string> {
  const args = context.arguments
  const operation = readOperation(args)
  const caller = args.required('caller')
  const { issuer, policy } = await readIssuer(context)
  const audience = args.text('audience') ?? policy?.audience ?? args.required('audience')
  const header = readKey([await readStandardInput(context, 'the key')])
  if (header.type === 'key') {
    return recordKey({ issuer, audience, caller, operation }, header.key)
  }
  throw usageError(
    'input',
    'standard input does not contain a key of 1 to 255 visible ASCII characters',
  )
}

function readOperation(args: CommandContext['arguments']): string {
  const operation = args.text('operation')
  const parts = ['method', 'mount', 'route'].filter((name) => args.text(name) !== undefined)
  if ((operation !== undefined) === parts.length > 0) {
    throw usageError('usage', 'use either --operation or --method, --mount and --route')
  }
  if (operation !== undefined) return operation
  // Node accepts methods in upper case only.
  const method = args.required('method').toUpperCase()
  return operationOf(method, args.required('mount'), args.required('route'))
}

import { readKey } from '../../base/raw-headers.js'
import {
  decodeResult,
  encodeResult,
  isBodyless,
  NEVER_STORED_HEADERS,
} from '../../idempotency/buffered-response/stored-result.js'
import { deriveRecordId, operationOf } from '../../idempotency/fingerprint.js'
import type { Resolution } from '../../idempotency/leased/record-keeper.js'
import { type Arguments, type OptionSpecs, optionNames } from '../frame/arguments.js'
import type { CommandContext } from '../frame/command.js'
import { usageError } from '../frame/command-failure.js'
import { ISSUER_OPTION, POLICY_OPTION, readIssuer } from '../input/policy-file.js'
import { readFileBytes } from '../input/private-file.js'
import { readStandardInput } from '../input/standard-input.js'

export const REQUEST_OPTIONS: OptionSpecs = {
  '--fence N': 'change the record if its fence is still the one shown',
  '--free': 'the write did not happen: the next retry runs',
  '--forget': 'the write happened, and must happen again: the next request runs',
  '--done STATUS': 'the write happened: retries get an answer with this status',
  '--header LINE...': 'a header of the answer, as name: value',
  '--body FILE': 'the body of the answer',
  '--reason TEXT': 'the reason, which --forget needs',
}

/** The requested end of a record. */
export type SettleRequest = Resolution & {
  readonly fence: number
  readonly reason?: string | undefined
}

const FENCE_FORM = /^(?:0|[1-9]\d*)$/
const STATUS_FORM = /^\d{3}$/

const ENDINGS = ['free', 'forget', 'done'] as const

/** Returns `undefined` if the record is only to be shown. @throws CommandFailure (2) */
export async function readSettleRequest(args: Arguments): Promise<SettleRequest | undefined> {
  const [ending, ...others] = ENDINGS.filter((name) => args.has(name))
  if (others.length > 0) throw usageError('use one of --free, --forget and --done STATUS')
  if (ending !== 'done') args.refuse(['header', 'body'], 'requires --done')
  const fence = readFence(args)
  const reason = args.shortText('reason')
  if (ending === undefined) return undefined
  if (fence === undefined) {
    throw usageError(`--${ending} needs --fence N: settle with the record alone shows it`)
  }
  switch (ending) {
    case 'free':
      return { type: 'freed', fence, reason }
    case 'forget':
      if (reason === undefined) throw usageError('--forget needs --reason TEXT')
      return { type: 'forgotten', fence, reason }
    case 'done':
      return { type: 'finished', fence, reason, result: await readAnswer(args) }
  }
}

function readFence(args: Arguments): number | undefined {
  const text = args.text('fence')
  if (text === undefined) return undefined
  const fence = Number(text)
  if (FENCE_FORM.test(text) && Number.isSafeInteger(fence)) return fence
  throw usageError('--fence must be an integer of at least 0, as shown')
}

/** Reads the answer, in the form that a store keeps. */
async function readAnswer(args: Arguments): Promise<Uint8Array> {
  const statusText = args.required('done')
  const status = STATUS_FORM.test(statusText) ? Number(statusText) : 0
  if (!isStorable(status)) throw usageError('--done must be a status from 200 to 999')
  const headers = args.texts('header').map((line) => readHeader(line, status))
  const path = args.text('body')
  if (path !== undefined && isBodyless(status)) {
    throw usageError(`an answer with status ${status} cannot have a body`)
  }
  const body = path === undefined ? Buffer.alloc(0) : await readFileBytes('--body', path, 'public')
  return encodeResult({ status, headers, body })
}

type Header = readonly [name: string, value: string]

function readHeader(line: string, status: number): Header {
  const colon = line.indexOf(':')
  const name = line.slice(0, Math.max(colon, 0)).trim().toLowerCase()
  const value = line.slice(colon + 1).trim()
  const isStored = name !== 'content-length' && !NEVER_STORED_HEADERS.test(name)
  if (colon > 0 && isStored && isStorable(status, [[name, value]])) return [name, value]
  throw usageError(
    '--header must be a line such as content-type: application/json, and not set-cookie, content-length or a hop-by-hop header',
  )
}

/** Whether a store can replay an answer with this status and these headers. */
function isStorable(status: number, headers: readonly Header[] = []): boolean {
  return decodeResult(encodeResult({ status, headers, body: Buffer.alloc(0) })) !== undefined
}

/** The options that, with the key that a caller sent, identify a record. */
const SCOPE_OPTIONS: OptionSpecs = {
  '--audience AUD': 'the exact aud (default: that of --policy)',
  '--caller NAME': 'the caller that sent the key',
  '--operation NAME': 'the operation, if the receiver names it',
  '--method METHOD': 'otherwise, the method of the request',
  '--mount [PATH]': 'the path of the router as in the request; empty without a router',
  '--route PATTERN': 'the path of the route as in the code of the receiver',
  ...ISSUER_OPTION,
  ...POLICY_OPTION,
}

export const RECORD_OPTIONS: OptionSpecs = {
  '--key-stdin': 'find the record by the key on standard input and the options below',
  ...SCOPE_OPTIONS,
}

const RECORD_FORM = /^[A-Za-z0-9_-]{24}$/

type RecordInput = Pick<CommandContext, 'arguments' | 'stdin' | 'note'>

/**
 * Reads the name of the record.
 *
 * @throws CommandFailure (2)
 */
export async function readRecordName(context: RecordInput): Promise<string> {
  const args = context.arguments
  const [record] = args.values
  if (args.has('key-stdin')) {
    if (record === undefined) return await recordOfKey(context)
    throw usageError('use either RECORD or --key-stdin')
  }
  if (record === undefined)
    throw usageError('a record is missing: add RECORD, as in the events, or --key-stdin')
  args.refuse(optionNames(SCOPE_OPTIONS), 'requires --key-stdin')
  if (RECORD_FORM.test(record)) return record
  throw usageError(
    'the name of a record has 24 characters of A-Za-z0-9_-, as in the events; pass a key on ' +
      'standard input with --key-stdin',
  )
}

async function recordOfKey(context: RecordInput): Promise<string> {
  const args = context.arguments
  const operation = readOperation(args)
  const caller = args.required('caller')
  const { issuer, policy } = await readIssuer(context)
  const audience = args.text('audience') ?? policy?.audience ?? args.required('audience')
  const parsed = readKey([await readStandardInput(context, 'the key')])
  if (parsed.type === 'key') {
    return deriveRecordId({ issuer, audience, caller, operation }, parsed.key)
  }
  throw usageError(
    'standard input does not contain a key of 1 to 255 visible ASCII characters',
    'input',
  )
}

function readOperation(args: CommandContext['arguments']): string {
  if (args.either('operation', 'method') === 'operation') {
    args.refuse(['mount', 'route'], 'requires --method')
    return args.required('operation')
  }
  // Node accepts methods in upper case only.
  const method = args.required('method').toUpperCase()
  return operationOf(method, args.required('mount'), args.required('route'))
}

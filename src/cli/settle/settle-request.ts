import { isBodyless } from '../../idempotency/buffered-response/head.js'
import {
  decodeResult,
  encodeResult,
  NEVER_STORED_HEADERS,
} from '../../idempotency/buffered-response/stored-result.js'
import type { Arguments, OptionSpecs } from '../frame/arguments.js'
import { usageError } from '../frame/command-failure.js'
import { readBytes } from '../input/private-file.js'

export const REQUEST_OPTIONS: OptionSpecs = {
  fence: {
    kind: 'text',
    value: 'N',
    help: 'change the record if its fence is still the one shown',
  },
  free: { kind: 'flag', help: 'the write did not happen: the next retry runs' },
  done: {
    kind: 'text',
    value: 'STATUS',
    help: 'the write happened: retries get an answer with this status',
  },
  header: {
    kind: 'text',
    value: 'LINE',
    help: 'a header of the answer, as name: value',
    repeatable: true,
  },
  body: { kind: 'text', value: 'FILE', help: 'the body of the answer' },
}

/** The requested end of a record; none if the record is only shown. */
export type SettleRequest =
  | { readonly type: 'freed'; readonly fence: number }
  | { readonly type: 'finished'; readonly fence: number; readonly result: Uint8Array }

const FENCE_FORM = /^(?:0|[1-9]\d*)$/
const STATUS_FORM = /^\d{3}$/

/** @throws CommandFailure (2) */
export async function readSettleRequest(args: Arguments): Promise<SettleRequest | undefined> {
  const isFree = args.flag('free')
  const status = args.text('done')
  const isDone = status !== undefined
  if (isFree && isDone) throw usageError('usage', 'use either --free or --done')
  const ofDone = ['header', 'body'].find((name) => args.text(name) !== undefined)
  if (ofDone !== undefined && !isDone) throw usageError('usage', `--${ofDone} requires --done`)
  const fence = readFence(args)
  if (!isFree && !isDone) {
    if (fence === undefined) return undefined
    throw usageError('usage', '--fence requires --free or --done')
  }
  if (fence === undefined) {
    throw usageError(
      'usage',
      `--${isFree ? 'free' : 'done'} needs the --fence shown for the record`,
    )
  }
  return isDone
    ? { type: 'finished', fence, result: await readAnswer(status, args) }
    : { type: 'freed', fence }
}

function readFence(args: Arguments): number | undefined {
  const text = args.text('fence')
  if (text === undefined) return undefined
  const fence = Number(text)
  if (FENCE_FORM.test(text) && Number.isSafeInteger(fence)) return fence
  throw usageError('usage', '--fence must be an integer of at least 0, as shown')
}

/** Reads the answer, in the form that a store keeps. */
async function readAnswer(statusText: string, args: Arguments): Promise<Uint8Array> {
  const status = STATUS_FORM.test(statusText) ? Number(statusText) : 0
  if (!isStorable(status)) throw usageError('usage', '--done must be a status from 200 to 999')
  const headers = args.texts('header').map((line) => readHeader(line, status))
  const path = args.text('body')
  if (path !== undefined && isBodyless(status)) {
    throw usageError('usage', `an answer with status ${status} cannot have a body`)
  }
  const body = path === undefined ? Buffer.alloc(0) : await readBytes('--body', path, 'public')
  return encodeResult({ status, headers, body })
}

type Header = readonly [name: string, value: string]

function readHeader(line: string, status: number): Header {
  const colon = line.indexOf(':')
  const name = line.slice(0, Math.max(colon, 0)).trim().toLowerCase()
  const value = line.slice(colon + 1).trim()
  if (name === 'content-length') {
    throw usageError('usage', '--header must not be content-length, which follows from --body')
  }
  if (NEVER_STORED_HEADERS.test(name)) {
    throw usageError('usage', '--header must not be set-cookie or a hop-by-hop header')
  }
  if (colon > 0 && isStorable(status, [[name, value]])) return [name, value]
  throw usageError('usage', '--header must be a line such as content-type: application/json')
}

/** Whether a store can replay such an answer. */
function isStorable(status: number, headers: readonly Header[] = []): boolean {
  return decodeResult(encodeResult({ status, headers, body: Buffer.alloc(0) })) !== undefined
}

import { isObject } from '../../base/options.js'
import { MigrationError } from '../run/migration-error.js'
import { createDigestTable } from './digest-table.js'
import type { Source, SourceRecord } from './source.js'
import { type OpenSource, openSource } from './source.js'

/** A person's decision on one identity. */
export type Correction =
  /** Replaces a record that was not imported, with the same external id. */
  | {
      readonly type: 'replace'
      readonly externalUserId: string
      /** `value` and `bytes` of the user, `line` of the correction. */
      readonly record: SourceRecord
    }
  | {
      readonly type: 'leaveOut' | 'accept'
      readonly externalUserId: string
      readonly line: number
      readonly reason: string
    }

/** Corrections that can be read several times. */
export interface OpenCorrections extends Pick<OpenSource, 'name' | 'digest'> {
  /** Throws a MigrationError `bad_corrections` at the first invalid line. */
  corrections(signal?: AbortSignal): AsyncIterable<Correction>
}

/** Room for `{"replaces":id,"user":` around a record. */
const MAX_ENVELOPE_BYTES = 4096
const MAX_REASON_LENGTH = 500
const FORMS =
  'a correction is {"replaces":id,"user":{…}}, {"leaveOut":id,"reason":"…"} or {"accept":id,"reason":"…"}'

export function openCorrections(source: Source, maxRecordBytes: number): OpenCorrections {
  const { name, records, digest } = openSource(source, {
    code: 'bad_corrections',
    maxRecordBytes: maxRecordBytes + MAX_ENVELOPE_BYTES,
  })
  const badCorrection = (message: string, line: number): MigrationError =>
    new MigrationError('bad_corrections', `${message} (${JSON.stringify(name)})`, line)

  return {
    name,
    digest,
    async *corrections(signal) {
      const lines = createDigestTable()
      for await (const record of records(signal)) {
        const correction = parseCorrection(record, maxRecordBytes)
        if (typeof correction === 'string') throw badCorrection(correction, record.line)
        if (lines.add(correction.externalUserId, record.line) !== undefined) {
          throw badCorrection('this identity has a correction already', record.line)
        }
        yield correction
      }
    },
  }
}

/** Returns the correction, or a message that describes the error. */
function parseCorrection({ value, line }: SourceRecord, maxBytes: number): Correction | string {
  const { replaces, user, leaveOut, accept, reason } = value
  const [first, second] = Object.keys(value).sort()
  if (first === undefined || second === undefined || Object.keys(value).length > 2) return FORMS
  if (`${first} ${second}` === 'replaces user') {
    return isId(replaces) ? replacement(replaces, user, { line, maxBytes }) : FORMS
  }
  const type = first === 'accept' ? 'accept' : 'leaveOut'
  const externalUserId = type === 'accept' ? accept : leaveOut
  if (!isId(externalUserId) || second !== 'reason') return FORMS
  if (typeof reason !== 'string' || reason.trim() === '' || reason.length > MAX_REASON_LENGTH) {
    return `a reason must have 1 to ${MAX_REASON_LENGTH} characters`
  }
  return { type, externalUserId, line, reason }
}

function replacement(
  externalUserId: string,
  user: unknown,
  { line, maxBytes }: { readonly line: number; readonly maxBytes: number },
): Correction | string {
  if (!isObject(user)) return FORMS
  if (user['externalUserId'] !== externalUserId) {
    return 'the user must have the externalUserId that it replaces'
  }
  const bytes = Buffer.byteLength(JSON.stringify(user))
  if (bytes > maxBytes) return `this user is longer than ${maxBytes} bytes`
  return { type: 'replace', externalUserId, record: { line, value: user, bytes } }
}

const isId = (value: unknown): value is string => typeof value === 'string' && value !== ''

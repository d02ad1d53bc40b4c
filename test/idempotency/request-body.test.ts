import { describe, expect, it } from 'vitest'
import { mediaTypeOf, readRequestBody } from '../../src/idempotency/fingerprint.js'

/** A request as a server of Node and some parser leave it. */
function read(
  headers: Record<string, string>,
  given: { readonly body?: unknown; readonly readableEnded?: boolean; readonly _body?: unknown },
) {
  const rawHeaders = Object.entries(headers).flat()
  return readRequestBody({ headers, rawHeaders, readableEnded: true, ...given })
}

const BLANKS = [undefined, null, '', {}, Object.create(null)]
const FIVE = { 'content-length': '5' }
const CHUNKED = { 'transfer-encoding': 'chunked' }

describe('the body of a request', () => {
  it('is none where the headers announce none and nothing is there', () => {
    for (const body of BLANKS) {
      expect(read({}, { body, readableEnded: false })).toEqual({ type: 'none' })
      expect(read({ 'content-length': '0' }, { body })).toEqual({ type: 'none' })
    }
  })

  it('counts where it is there, though the headers announce none', () => {
    for (const body of [{ a: 1 }, [], 'a', 0, false, Buffer.alloc(0)]) {
      expect(read({}, { body })).toEqual({ type: 'parsed', content: body })
    }
  })

  it('is unread until its stream has ended, whatever is there', () => {
    for (const body of [...BLANKS, { a: 1 }, 'a', []]) {
      for (const headers of [FIVE, CHUNKED, { ...CHUNKED, 'content-length': '0' }]) {
        const given = { body, readableEnded: false, _body: true }
        expect(read(headers, given)).toEqual({ type: 'unread' })
      }
    }
  })

  it('is what its parser has made of it', () => {
    for (const body of [
      { a: undefined },
      [],
      [{}],
      'a',
      0,
      false,
      Buffer.alloc(0),
      new Uint8Array(),
      new Date(0),
    ]) {
      for (const headers of [FIVE, CHUNKED]) {
        expect(read(headers, { body })).toEqual({ type: 'parsed', content: body })
      }
    }
  })

  it('is not parsed where nothing of it is left, and no parser says that it has read it', () => {
    for (const body of BLANKS) {
      for (const headers of [FIVE, CHUNKED]) {
        expect(read(headers, { body })).toEqual({ type: 'unparsed' })
        expect(read(headers, { body, _body: 'yes' })).toEqual({ type: 'unparsed' })
        expect(read(headers, { body, _body: true })).toEqual({ type: 'parsed', content: body })
      }
    }
  })

  it('may be {} of a type that ends in +json, in exactly two bytes', () => {
    const type = { 'content-type': 'application/vnd.api+json' }
    const ofLength = (length: string, more = {}) => ({ ...type, 'content-length': length, ...more })
    const parsed = { type: 'parsed', content: {}, length: 2 }
    expect(read(ofLength('2'), { body: {} })).toEqual(parsed)
    const unparsed = { type: 'unparsed' }
    for (const other of ['1', '3', '9'])
      expect(read(ofLength(other), { body: {} })).toEqual(unparsed)
    expect(read(ofLength('2', CHUNKED), { body: {} })).toEqual(unparsed)
    for (const other of ['text/plain', 'text/json', 'application/json5', '']) {
      expect(read(ofLength('2', { 'content-type': other }), { body: {} })).toEqual(unparsed)
    }
  })

  it('is not what was left in place of a text, however long it is', () => {
    for (const body of [undefined, null, '']) {
      for (const length of ['2', '4', '9']) {
        const headers = { 'content-type': 'application/json', 'content-length': length }
        expect(read(headers, { body })).toEqual({ type: 'unparsed' })
      }
    }
  })

  it('is not an empty object where its length shows that there was more', () => {
    const json = { 'content-type': 'application/json' }
    const form = { 'content-type': 'application/x-www-form-urlencoded' }
    const body = {}
    expect(read({ ...json, 'content-length': '6' }, { body })).toEqual({ type: 'unparsed' })
    expect(read({ ...form, 'content-length': '1' }, { body })).toEqual({ type: 'unparsed' })
    const compressed = { 'content-encoding': 'gzip', 'content-length': '60' }
    const parsed = { type: 'parsed', content: body, length: 60 }
    expect(read({ ...json, ...compressed }, { body })).toEqual(parsed)
    expect(read({ ...form, ...compressed }, { body })).toEqual(parsed)
    const identity = { 'content-encoding': ' Identity', 'content-length': '60' }
    expect(read({ ...json, ...identity }, { body })).toEqual({ type: 'unparsed' })
  })

  it('is an empty object that was read, where its media type is exactly one that parses to it', () => {
    const types = [
      'application/json',
      'application/x-www-form-urlencoded',
      ' Application/JSON ; charset=utf-8',
    ]
    for (const type of types) {
      for (const body of [{}, Object.create(null)]) {
        const chunked = { type: 'parsed', content: body }
        expect(read({ ...CHUNKED, 'content-type': type }, { body })).toEqual(chunked)
        if (type.toLowerCase().includes('json')) {
          const announced = { ...chunked, length: 5 }
          expect(read({ ...FIVE, 'content-type': type }, { body })).toEqual(announced)
        }
        const unread = { body, readableEnded: false }
        expect(read({ ...FIVE, 'content-type': type }, unread)).toEqual({ type: 'unread' })
      }
      for (const body of [undefined, null, '']) {
        expect(read({ ...CHUNKED, 'content-type': type }, { body })).toEqual({ type: 'unparsed' })
      }
    }
    const others = ['application/json5', 'application/vnd.api+json', 'text/json', 'json', '']
    for (const type of others) {
      expect(read({ ...CHUNKED, 'content-type': type }, { body: {} })).toEqual({ type: 'unparsed' })
    }
  })

  it('has a media type without parameters, in lower case', () => {
    const type = (value?: string) => mediaTypeOf({ headers: { 'content-type': value } })
    expect(type(' Application/JSON ;charset=utf-8')).toBe('application/json')
    expect([type(), type('')]).toEqual(['', ''])
  })

  it('is a fault where rawHeaders lack how long it is', () => {
    const request = { headers: { 'content-length': '5' }, rawHeaders: ['host', 'x'], body: {} }
    expect(() => readRequestBody({ ...request, readableEnded: true })).toThrow(
      /content-length.*rawHeaders/,
    )
  })
})

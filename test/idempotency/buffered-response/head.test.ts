import { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { describe, expect, it } from 'vitest'
import { isEventStream, readHead } from '../../../src/idempotency/buffered-response/head.js'
import { isBodyless } from '../../../src/idempotency/buffered-response/stored-result.js'

const response = (headers: Record<string, string | number | string[]> = {}): ServerResponse => {
  const made = new ServerResponse(new IncomingMessage(new Socket()))
  for (const [name, value] of Object.entries(headers)) made.setHeader(name, value)
  return made
}

const KEPT = new Set(['x-a', 'link', 'x-n', 'x-new', 'a', 'b'])

const headersOf = (of: ServerResponse, given: unknown) => readHead(of, [200, given], KEPT).headers

const HEAD = { status: 200, headers: [], strictLength: undefined }

describe('The head of a response', () => {
  it('has the headers that were set, with those of writeHead over them', () => {
    const set = { 'X-A': '1', Link: ['</a>', '</b>'], 'X-N': 5 }
    expect(headersOf(response(set), undefined)).toEqual([
      ['x-a', '1'],
      ['link', '</a>'],
      ['link', '</b>'],
      ['x-n', '5'],
    ])
    expect(headersOf(response(set), { link: '</c>', 'X-New': ['2'] })).toEqual([
      ['x-a', '1'],
      ['link', '</c>'],
      ['x-n', '5'],
      ['x-new', '2'],
    ])
  })

  it.each([
    [{ 'X-A': 1, b: ['2', '3'] }],
    [['X-A', 1, 'b', '2', 'B', '3']],
    [
      [
        ['X-A', 1],
        ['b', '2'],
        ['b', '3'],
      ],
    ],
  ])('are taken from each form of writeHead: %j', (given) => {
    expect(headersOf(response(), given)).toEqual([
      ['x-a', '1'],
      ['b', '2'],
      ['b', '3'],
    ])
  })

  it('are what this Node makes of a list beside those that were set', () => {
    const real = response({ A: '0' })
    const list = ['A', '1', 'A', '2']
    const snapshot = headersOf(real, list)
    real.writeHead(200, list)
    expect(snapshot.map(([, value]) => value)).toEqual([real.getHeader('a')].flat())
  })

  it('tell server-sent events by their media type alone', () => {
    const is = (value: string): boolean =>
      isEventStream({ ...HEAD, headers: [['content-type', value]] })
    for (const value of [
      'text/event-stream',
      'Text/Event-Stream; charset=utf-8',
      ' text/event-stream ;x',
    ]) {
      expect(is(value)).toBe(true)
    }
    for (const value of [
      'text/event-streams',
      'text/event-stream-x',
      'text/plain',
      'x text/event-stream',
    ]) {
      expect(is(value)).toBe(false)
    }
    expect(isEventStream({ ...HEAD, headers: [['x-type', 'text/event-stream']] })).toBe(false)
  })

  it('has the status as an integer, and headers also behind a reason', () => {
    expect(readHead(response(), ['201'], KEPT)).toEqual({ ...HEAD, status: 201 })
    const head = readHead(response(), [201, 'Made', { 'X-A': 1, 'X-Other': 2 }], KEPT)
    expect(head).toEqual({ ...HEAD, status: 201, headers: [['x-a', '1']] })
  })

  it('says how long the body is, where Node is to measure it', () => {
    const lengthOf = (of: ServerResponse, given?: unknown) =>
      readHead(of, [200, given], KEPT).strictLength
    const announced = response({ 'Content-Length': 5 })
    expect(lengthOf(announced)).toBeUndefined()
    announced.strictContentLength = true
    expect(lengthOf(announced)).toBe(5)
    expect(lengthOf(announced, { 'content-length': 6 })).toBe(6)
    expect(lengthOf(Object.assign(response(), { strictContentLength: true }))).toBeUndefined()
  })

  it('of some statuses has no body', () => {
    const statuses = [100, 199, 200, 204, 205, 304, 404]
    expect(statuses.filter(isBodyless)).toEqual([100, 199, 204, 304])
  })
})

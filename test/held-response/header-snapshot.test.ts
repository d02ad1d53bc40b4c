import { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { describe, expect, it } from 'vitest'
import { isEventStream, snapshotHeaders } from '../../src/held-response/header-snapshot.js'

const response = (headers: Record<string, string | number | string[]> = {}): ServerResponse => {
  const made = new ServerResponse(new IncomingMessage(new Socket()))
  for (const [name, value] of Object.entries(headers)) made.setHeader(name, value)
  return made
}

describe('The headers of a response', () => {
  it('are those that were set, with those of writeHead over them', () => {
    const set = { 'X-A': '1', Link: ['</a>', '</b>'], 'X-N': 5 }
    expect(snapshotHeaders(response(set), undefined)).toEqual([
      ['x-a', '1'],
      ['link', '</a>'],
      ['link', '</b>'],
      ['x-n', '5'],
    ])
    expect(snapshotHeaders(response(set), { link: '</c>', 'X-New': ['2'] })).toEqual([
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
    expect(snapshotHeaders(response(), given)).toEqual([
      ['x-a', '1'],
      ['b', '2'],
      ['b', '3'],
    ])
  })

  it('are what this Node makes of a list beside those that were set', () => {
    const real = response({ A: '0' })
    const list = ['A', '1', 'A', '2']
    const snapshot = snapshotHeaders(real, list)
    real.writeHead(200, list)
    expect(snapshot.map(([, value]) => value)).toEqual([real.getHeader('a')].flat())
  })

  it('tell server-sent events by their media type alone', () => {
    const is = (value: string): boolean => isEventStream([['content-type', value]])
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
    expect(isEventStream([['x-type', 'text/event-stream']])).toBe(false)
  })
})

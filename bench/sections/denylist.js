import { randomUUID } from 'node:crypto'
import { compare } from '../compare.js'

export const FULL = { prefix: 'full:' }
export const EMPTY = { prefix: 'empty:' }
const DENIED = 10_000
const KINDS = ['caller', 'key', 'token']

/** What a live denylist costs a read whose caller, key and token it does not deny. */
export async function denylist(bench) {
  await fillDenylist(bench)
  const few = { requests: [{ kind: 'read', pool: 'few', status: 200 }] }
  await compare(bench, {
    title: 'reads, few tokens, live denylist',
    ours: {
      ...few,
      label: '10,000 entries',
      app: 'denylistRead',
      settings: FULL,
    },
    others: [
      { ...few, label: 'no entries', app: 'denylistRead', settings: EMPTY, aim: 0.98 },
      { ...few, label: 'no denylist', app: 'read' },
    ],
  })
}

/** Writes what `deny` would write in minutes. */
export async function fillDenylist({ redis, settings }) {
  const keys = `${FULL.prefix}{denylist}`
  const rows = Array.from({ length: DENIED }, (_, index) => [
    JSON.stringify([settings.issuer, KINDS[index % KINDS.length], randomUUID()]),
    `${index + 1}|-|-`,
  ])
  await redis.client.del(`${keys}:entries`)
  await redis.client.hset(`${keys}:entries`, ...rows.flat())
  await redis.client.set(`${keys}:version`, `${DENIED} bench`)
}

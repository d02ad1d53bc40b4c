import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { expect, it, onTestFinished, vi } from 'vitest'
import type { ListEvent } from '../../../src/verification/denylist/list-state.js'
import { readClocks } from '../../../src/verification/denylist/list-state.js'
import { createLocalDenylist } from '../../../src/verification/denylist/local-denylist.js'
import { listOf } from './story.js'

const ISSUER = 'https://core.example'
const OPTIONS = { maxStaleSeconds: 10, whenUnknown: 'refuse' } as const

const readNow = (list: ReturnType<typeof listOf>): ListEvent => {
  const at = readClocks()
  return { type: 'read', at, requestedAt: at, list }
}

it('is unknown at once when the wall clock has passed its time: the machine may have slept', () => {
  const held = createLocalDenylist(OPTIONS)
  held.apply(readNow(listOf(1)))
  const now = Date.now()
  vi.spyOn(Date, 'now').mockReturnValue(now + 9_000)
  expect(held.lists(ISSUER)).toBeDefined()
  vi.spyOn(Date, 'now').mockReturnValue(now + 10_100)
  expect(held.lists(ISSUER)).toBeUndefined()
})

it.each(['refuse', 'accept'] as const)(
  'says once that it has expired, to the first request that finds it so: %s',
  (whenUnknown) => {
    const heard: unknown[] = []
    const listen = (event: unknown): void => void heard.push(event)
    subscribe('express-service-auth:denylist', listen)
    onTestFinished(() => {
      unsubscribe('express-service-auth:denylist', listen)
    })
    const held = createLocalDenylist({ ...OPTIONS, whenUnknown })
    held.lists(ISSUER)
    held.apply(readNow(listOf(1)))
    heard.length = 0
    const now = Date.now()
    vi.spyOn(Date, 'now').mockReturnValue(now + 10_100)
    for (const _ of ['first', 'second']) held.lists(ISSUER)
    expect(heard).toEqual([{ type: 'expired', reason: 'timeout' }])
    held.apply(readNow(listOf(1)))
    expect(heard.slice(1)).toEqual([{ type: 'recovered' }])
  },
)

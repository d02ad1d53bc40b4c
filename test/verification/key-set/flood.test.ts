import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'
import { type Behaviour, serve } from '../../support/issuer/key-set-server.js'
import { openReceiverOfKeySet } from '../../support/issuer/open-key-set.js'
import { makeSigningKey, tokenFrom, withKid } from '../../support/issuer/signing-keys.js'
import { pipeline } from '../../support/network/pipeline.js'
import { compile } from '../../support/process/compile.js'

const old = makeSigningKey('d-1')
const young = makeSigningKey('d-2')
const before = serve({ keys: [old.jwk] })
const after = serve({ keys: [young.jwk, old.jwk] })

async function stage(behaviour: Behaviour) {
  const opened = await openReceiverOfKeySet([behaviour], { timeoutMs: 60_000 })
  const { clock, keySet, receiver } = opened
  await keySet.ready()
  const tokenOf = (key: typeof old, jti = 'a'): string =>
    tokenFrom(key, { now: clock(), claims: { jti } })
  const random = tokenOf(old)
  let floods = 0
  const flood = (count: number): Promise<ReadonlyMap<number, number>> => {
    const name = `random-${++floods}`
    return pipeline(receiver.port, count, (index) => withKid(random, `${name}-${index}`))
  }
  return { ...opened, tokenOf, flood }
}

it('five hundred random kids cost two fetches, and a rotated key waits for no more than the budget', async () => {
  const { server, clock, receiver, tokenOf, flood } = await stage(before)
  expect([401, 503]).toEqual(expect.arrayContaining([...(await flood(10)).keys()]))
  expect(server.requests).toHaveLength(3)
  server.behave(after)
  const [flooded, statuses] = await Promise.all([
    flood(500),
    Promise.all(
      Array.from({ length: 100 }, async (_, index) => {
        return (await receiver.call(tokenOf(old, `known-${index}`))).status
      }),
    ),
  ])
  expect(flooded).toEqual(new Map([[503, 500]]))
  expect(new Set(statuses)).toEqual(new Set([200]))
  expect(server.requests).toHaveLength(3)
  expect((await receiver.call(tokenOf(young))).status).toBe(503)

  clock.advance(10)
  const [again, rotated] = await Promise.all([flood(200), receiver.call(tokenOf(young))])
  expect([401, 503]).toEqual(expect.arrayContaining([...again.keys()]))
  expect(rotated.status).toBe(200)
  expect(server.requests.length).toBeLessThanOrEqual(5)
})

it('a rotated key that comes first, or in the midst of the flood, is found at once', async () => {
  const { server, receiver, tokenOf, flood } = await stage(before)
  server.behave(after)
  const flooding = flood(500)
  expect((await receiver.call(tokenOf(young))).status).toBe(200)
  expect([401, 503]).toEqual(expect.arrayContaining([...(await flooding).keys()]))
  expect(server.requests.length).toBeLessThanOrEqual(3)
})

it('twelve thousand random kids leave no trace in memory', async () => {
  const child = await compile(new URL('./flood.child.ts', import.meta.url))
  const options = ['--expose-gc', child]
  const { stdout } = await promisify(execFile)(process.execPath, options, { timeout: 60_000 })
  const { grownBytes, statuses, fetches } = JSON.parse(stdout)
  expect(statuses.map(([status]: number[]) => status).sort()).toEqual([401, 503])
  // Two in any ten of 120 seconds, and the first.
  expect(fetches).toBeLessThanOrEqual(27)
  expect(grownBytes).toBeLessThan(768 * 1024)
})

/** Run with --expose-gc: how much memory twelve thousand random key ids cost a receiver. */
import { remoteKeySet, serviceAuth } from 'express-service-auth'
import { serve, startKeySetServer } from '../../support/issuer/key-set-server.js'
import { makeSigningKey, POLICY, tokenFrom, withKid } from '../../support/issuer/signing-keys.js'
import { manualClock } from '../../support/manual-clock.js'
import { pipeline } from '../../support/network/pipeline.js'
import { behind, openReceiver } from '../../support/receiver/open-receiver.js'

const key = makeSigningKey('d-1')
const server = await startKeySetServer(serve({ keys: [key.jwk] }))
const clock = manualClock()
const keySet = remoteKeySet({ jwksUri: server.url, clock })
const receiver = await openReceiver(behind(serviceAuth({ ...POLICY, keySet, clock })))
await keySet.ready()
const token = tokenFrom(key, { now: clock() })

async function settledHeap(): Promise<number> {
  for (let round = 0; round < 5; round++) {
    await new Promise(setImmediate)
    globalThis.gc?.()
  }
  return process.memoryUsage().heapUsed
}

/** A hundred and fifty random key ids a second, on the clock of the receiver; which statuses they get. */
async function flood(name: string, hundreds: number): Promise<number[]> {
  const statuses = new Set<number>()
  for (let hundred = 0; hundred < hundreds; hundred++) {
    clock.advance(100 / 150)
    const values = Array.from({ length: 100 }, (_, index) => {
      return `Bearer ${withKid(token, `${name}-${hundred}-${index}`)}`
    })
    for (const status of await pipeline(receiver.port, values)) statuses.add(status)
  }
  return [...statuses]
}

await flood('warm-up', 60)
const before = await settledHeap()
const statuses = await flood('flood', 120)
const grownBytes = (await settledHeap()) - before
console.log(JSON.stringify({ grownBytes, statuses, fetches: server.requests.length }))
keySet.close()
await receiver.close()
await server.close()

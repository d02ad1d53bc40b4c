/**
 * Run with --expose-gc: whether the store of the request that caused the first fetch can be collected
 * while the key set lives on, with the timer of its next refresh.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import { serviceAuth } from 'express-service-auth'
import { serve, startKeySetServer } from '../../support/issuer/key-set-server.js'
import { makeSigningKey, POLICY, tokenFrom } from '../../support/issuer/signing-keys.js'
import { behind, openReceiver } from '../../support/receiver/open-receiver.js'

const ROUNDS = 50
const ROUND_MS = 20

const key = makeSigningKey('d-1')
const server = await startKeySetServer(serve({ keys: [key.jwk] }))
const auth = serviceAuth({ ...POLICY, jwksUri: server.url })
const storage = new AsyncLocalStorage<object>()
let store: WeakRef<object> | undefined

const receiver = await openReceiver(
  behind((request, response, next) => {
    const made = { of: 'the request' }
    store = new WeakRef(made)
    storage.run(made, () => auth(request, response, next))
  }),
)
const { status } = await receiver.call(tokenFrom(key))
await receiver.close()

for (let round = 0; round < ROUNDS && store?.deref() !== undefined; round++) {
  await sleep(ROUND_MS)
  globalThis.gc?.()
}
const { state } = auth.health().keySet
console.log(JSON.stringify({ status, state, collected: store?.deref() === undefined }))
auth.close()
await server.close()

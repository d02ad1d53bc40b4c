import { Redis } from 'ioredis'
import { bareReadApp, createOrder, importEntry, readApp, writeApp } from './handlers.js'

const CALLERS = { billing: ['orders:read', 'orders:write'], reporting: ['orders:read'] }

async function open({ build, issuer, callers = CALLERS, tokenCache, denylist, senderConstraint }) {
  const { serviceAuth } = await importEntry(build)
  const auth = serviceAuth({
    issuer,
    audience: 'orders',
    source: 'microservice',
    tokenType: 'service-access',
    callers,
    tokenCache,
    denylist,
    senderConstraint,
  })
  await auth.ready()
  return auth
}

export async function read(settings) {
  const { requirePermissions } = await importEntry(settings.build)
  return readApp(await open(settings), requirePermissions('orders:read'))
}

export const bareRead = () => bareReadApp()

/** A read with the live denylist of this prefix. */
export async function denylistRead({ prefix, ...settings }) {
  const { redisDenylist } = await importEntry(settings.build, './redis')
  const redis = new Redis(settings.redisUrl, { lazyConnect: true })
  return read({ ...settings, denylist: redisDenylist(redis, { prefix }) })
}

/** A write behind `serviceAuth`; what is given stands behind the body parser. */
export async function write(settings, ...handlers) {
  const { requirePermissions } = await importEntry(settings.build)
  return writeApp(await open(settings), requirePermissions('orders:write'), ...handlers)
}

export const plainWrite = (settings) => write(settings, createOrder)

/** Patient: a machine that stalls for a moment is no fault that is measured here. */
async function storeOf({ build, redisUrl }) {
  const { redisStore } = await importEntry(build, './redis')
  return redisStore(new Redis(redisUrl), { timeoutMs: 5000 })
}

export async function idempotentWrite(settings) {
  const { requireIdempotencyKey } = await importEntry(settings.build)
  return write(settings, requireIdempotencyKey({ store: await storeOf(settings) }), createOrder)
}

export async function singleUseWrite(settings) {
  const { requireSingleUse } = await importEntry(settings.build)
  return write(settings, requireSingleUse({ store: await storeOf(settings) }), createOrder)
}

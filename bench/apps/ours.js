import express from 'express'
import { Redis } from 'ioredis'
import {
  requireIdempotencyKey,
  requirePermissions,
  requireSingleUse,
  serviceAuth,
} from '../../dist/index.js'
import { redisStore } from '../../dist/stores/redis/index.js'
import { bareReadApp, createOrder, readApp } from './handlers.js'

async function open({ issuer, tokenCache }) {
  const auth = serviceAuth({
    issuer,
    audience: 'orders',
    source: 'microservice',
    tokenType: 'service-access',
    callers: { billing: ['orders:read', 'orders:write'], reporting: ['orders:read'] },
    tokenCache,
  })
  await auth.ready()
  return auth
}

export const read = async (settings) =>
  readApp(await open(settings), requirePermissions('orders:read'))

export const bareRead = () => bareReadApp()

/** A write behind `serviceAuth`, with whatever stands before its handler. */
export async function write(settings, ...guards) {
  const app = express()
  app.use(await open(settings))
  const handlers = [requirePermissions('orders:write'), express.json(), ...guards, createOrder]
  app.post('/orders', ...handlers)
  return app
}

export const plainWrite = (settings) => write(settings)

/** Patient: a machine that stalls for a moment is no fault that is measured here. */
const storeOf = ({ redisUrl }) => redisStore(new Redis(redisUrl), { timeoutMs: 5000 })

export const idempotentWrite = (settings) =>
  write(settings, requireIdempotencyKey({ store: storeOf(settings) }))

export const singleUseWrite = (settings) =>
  write(settings, requireSingleUse({ store: storeOf(settings) }))

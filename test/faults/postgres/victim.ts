import { AsyncLocalStorage } from 'node:async_hooks'
import { randomUUID } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { RequestHandler, Response } from 'express'
import { requireIdempotencyKey, serviceAuth } from 'express-service-auth'
import { postgresStore } from '../../../src/stores/postgres/postgres-store.js'
import type { TransactionRunner } from '../../../src/stores/postgres/runner.js'
import { EXPRESS_MAJORS } from '../../support/express-majors.js'
import { ADAPTERS } from './adapters.js'
import type { Stop } from './victims.js'

// A receiver in a process of its own, whose requests stop wherever their `X-Stop-At` says until the test
// lets them go on.

function setting(name: string): string {
  const value = process.env[name]
  if (value === undefined) throw new Error(`${name} must be set`)
  return value
}

const stopOfRequest = new AsyncLocalStorage<string | undefined>()
const stopped: (() => void)[] = []
process.on('message', () => {
  for (const goOn of stopped.splice(0)) goOn()
})
process.on('disconnect', () => process.exit())

async function pass(stop: Stop, wanted = stopOfRequest.getStore()): Promise<void> {
  if (wanted !== stop) return
  const told = new Promise<void>((resolve) => stopped.push(resolve))
  process.send?.({ at: stop })
  await told
}

const adapter = ADAPTERS.find(({ name }) => name === setting('ADAPTER'))
const opened = await adapter?.open(setting('DATABASE_URL'), 8)
if (opened === undefined) throw new Error('ADAPTER must name an adapter')

/** Stops before the record is written. */
function stopping(runner: TransactionRunner<unknown>): TransactionRunner<unknown> {
  const { commitWith, query } = runner
  return {
    ...runner,
    async query(tx, text, values, limits) {
      if (tx !== undefined && text.startsWith('insert into')) await pass('before the record')
      return query(tx, text, values, limits)
    },
    ...(commitWith && {
      async commitWith(tx, statements) {
        await pass('before the record')
        return commitWith(tx, statements)
      },
    }),
  }
}

const store = postgresStore(stopping(opened.runner), {
  sweepSeconds: false,
  transactionMs: Number(setting('TRANSACTION_MS')),
})

/** Stands outside of the key, where the octets go to the caller. */
const watch: RequestHandler = async (request, response, next) => {
  const wanted = request.get('x-stop-at')
  if (wanted === ('after COMMIT' satisfies Stop)) stopSending(response)
  await stopOfRequest.run(wanted, async () => {
    await pass('before begin')
    next()
  })
}

function stopSending(response: Response): void {
  const { end } = response
  response.end = ((...sent: Parameters<typeof end>) => {
    void pass('after COMMIT', 'after COMMIT').then(() => Reflect.apply(end, response, sent))
    return response
  }) as typeof end
}

const createOrder: RequestHandler = async (request, response, next) => {
  try {
    const name = request.get('x-effect-of')
    const effect = `${name}/${randomUUID()}`
    await pass('before the write')
    const tx = store.transactionOf(request)
    await opened.insert(tx, effect)
    await pass('after the write')
    if (stopOfRequest.getStore() === ('in a statement' satisfies Stop)) {
      process.send?.({ at: 'in a statement' })
      await opened.execute(tx, 'select 1 from pg_sleep(30)')
    }
    // It may be thawed after its time.
    if (stopOfRequest.getStore() === 'after the write') await opened.insert(tx, `${effect}-late`)
    response.status(201).json({ effect })
  } catch (error) {
    next(error)
  }
}

const majors = EXPRESS_MAJORS.find(({ major }) => major === setting('EXPRESS'))
if (majors === undefined) throw new Error('EXPRESS must name a major of Express')
const app = majors.express()
app.set('env', 'test')
const auth = serviceAuth({
  issuer: setting('ISSUER'),
  audience: 'orders',
  source: 'microservice',
  tokenType: 'service-access',
  callers: ['billing'],
})
app.use(auth)
app.post('/orders/:id', watch, majors.express.json(), requireIdempotencyKey({ store }), createOrder)
await auth.ready()
const server = createServer(app)
server.listen(0, '127.0.0.1', () => {
  process.send?.({ port: (server.address() as AddressInfo).port })
})

import { AsyncLocalStorage } from 'node:async_hooks'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { RequestHandler, Response } from 'express'
import { requireIdempotencyKey, serviceAuth } from 'express-service-auth'
import { postgresStore } from '../../../src/stores/postgres/postgres-store.js'
import type { TransactionRunner } from '../../../src/stores/postgres/runner.js'
import { ADAPTERS, type OpenAdapter } from '../../stores/postgres/adapters/libraries.js'
import { EXPRESS_MAJORS } from '../../support/receiver/express-majors.js'
import { arrive, setting, stopAt } from '../stopping.js'
import type { Place, Stop, VictimSetting } from './victims.js'

// Receivers in a process of their own, whose requests stop wherever their `X-Stop-At` says until the test
// lets them go on.

/** Of a request. */
interface Wanted {
  readonly stop: string | undefined
  readonly index: number
}

const wantedBy = new AsyncLocalStorage<Wanted>()

async function pass(stop: Stop, wanted = wantedBy.getStore()): Promise<void> {
  if (wanted?.stop === stop) await stopAt(`${stop} of ${wanted.index}` satisfies Place)
}

/** Stops before the record is written. */
function stopping(runner: TransactionRunner<unknown>): TransactionRunner<unknown> {
  const { query } = runner
  return {
    ...runner,
    async query(tx, text, values, limits) {
      if (tx !== undefined && text.startsWith('insert into')) await pass('before the record')
      return query(tx, text, values, limits)
    },
  }
}

/** Stands outside of the key, where the bytes go to the caller. */
const watching =
  (index: number): RequestHandler =>
  async (request, response, next) => {
    const wanted = { stop: request.get('x-stop-at'), index }
    if (wanted.stop === ('after COMMIT' satisfies Stop)) stopSending(response, wanted)
    await wantedBy.run(wanted, async () => {
      await pass('before begin')
      next()
    })
  }

function stopSending(response: Response, wanted: Wanted): void {
  const { end } = response
  response.end = ((...sent: Parameters<typeof end>) => {
    void pass('after COMMIT', wanted).then(() => Reflect.apply(end, response, sent))
    return response
  }) as typeof end
}

const storeOf = ({ runner }: OpenAdapter) =>
  postgresStore(stopping(runner), {
    sweepSeconds: false,
    acquireMs: 10_000,
    transactionMs: Number(setting('TRANSACTION_MS')),
  })

const creating =
  (opened: OpenAdapter, store: ReturnType<typeof storeOf>): RequestHandler =>
  async (request, response, next) => {
    try {
      const effect = `${request.get('x-effect-of')}/${randomUUID()}`
      await pass('before the write')
      const tx = store.transactionOf(request)
      await opened.insert(tx, effect)
      await pass('after the write')
      const wanted = wantedBy.getStore()
      if (wanted?.stop === ('in a statement' satisfies Stop)) {
        arrive(`in a statement of ${wanted.index}` satisfies Place)
        await opened.execute(tx, 'select 1 from pg_sleep(30)')
      }
      // It may be thawed after its time.
      if (wanted?.stop === 'after the write') await opened.insert(tx, `${effect}-late`)
      response.status(201).json({ effect })
    } catch (error) {
      next(error)
    }
  }

const auth = serviceAuth({
  issuer: setting('ISSUER'),
  audience: 'orders',
  source: 'microservice',
  tokenType: 'service-access',
  callers: ['billing'],
})

/** Resolves with its port. */
async function open({ adapter: name, major, url }: VictimSetting, index: number): Promise<number> {
  const adapter = ADAPTERS.find((one) => one.name === name)
  const majors = EXPRESS_MAJORS.find((one) => one.major === major)
  if (!adapter || !majors) throw new Error('RECEIVERS must name adapters and majors of Express')
  const opened = await adapter.open(url, 8)
  const store = storeOf(opened)
  const app = majors.express()
  app.set('env', 'test')
  app.use(auth)
  const key = requireIdempotencyKey({ store })
  app.post('/orders/:id', watching(index), majors.express.json(), key, creating(opened, store))
  const server = createServer(app).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return (server.address() as AddressInfo).port
}

const settings: VictimSetting[] = JSON.parse(setting('RECEIVERS'))
const [ports] = await Promise.all([Promise.all(settings.map(open)), auth.ready()])
process.send?.({ ports, port: ports[0] })
